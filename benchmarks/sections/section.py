"""What a section consists of."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.measure import Arguments, Figures


@dataclass(frozen=True, slots=True)
class Section:
    """``measure`` reports figures, one line of JSON for each row of the section's table."""

    name: str
    head: tuple[str, ...]
    row: Callable[[Figures], list[str]]
    measure: Callable[[Arguments], None]
