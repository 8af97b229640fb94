"""How aligned windows share slices. Pure arithmetic.

A slice is the longest stretch of time that lies within each window completely or not at all. Tumbling
windows are slices themselves; a window of a minute that slides by a second has sixty.

    windows   [-----------------)
                    [-----------------)
                          [-----------------)
    slices    |-----|-----|-----|-----|-----|
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd


@dataclass(frozen=True, slots=True)
class SliceLayout:
    """Windows are named by their ends, slices by their starts. ``slide`` is at most ``size``."""

    size: int
    slide: int
    offset: int
    width: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", gcd(self.size, self.slide))

    @property
    def is_tumbling(self) -> bool:
        return self.size == self.slide

    def slice_of(self, timestamp: int) -> int:
        return timestamp - (timestamp - self.offset) % self.width

    def last_end(self, start: int) -> int:
        """The end of the last window that holds the slice."""
        return start - (start - self.offset) % self.slide + self.size

    def ends(self, start: int) -> range:
        """The ends of all windows that hold the slice, the last window first, as Flink has them."""
        return range(self.last_end(start), start, -self.slide)

    def first_end(self, start: int) -> int:
        return self.ends(start)[-1]

    def slices(self, end: int) -> range:
        """The slices of a window, in the order of time."""
        return range(end - self.size, end, self.width)
