"""Definition of a section."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.measure import Arguments, Figures


@dataclass(frozen=True, slots=True)
class Section:
    """A section. ``measure`` reports one line of JSON per row of the table.

    ``row`` gets the title of the peer as ``peer``. ``order`` sorts the rows of several peers.
    """

    name: str
    head: tuple[str, ...]
    row: Callable[[Figures], list[str]]
    measure: Callable[[Arguments], None]
    order: Callable[[Figures], int] = lambda _: 0
