"""How many records to work on before somebody looks at the clock."""

from __future__ import annotations

# Nobody knows yet what a record costs.
_FIRST_RECORDS = 1
_MOST_RECORDS = 4096
_SECONDS = 0.02


class ChunkPacer:
    """A chunk grows while it takes less than about 20 ms, and shrinks when it takes more."""

    __slots__ = ("records",)

    def __init__(self) -> None:
        self.records = _FIRST_RECORDS

    def took(self, seconds: float, records: int) -> None:
        if seconds < _SECONDS / 2 and records == self.records:
            self.records = min(self.records * 2, _MOST_RECORDS)
        elif seconds > 2 * _SECONDS:
            self.records = max(1, int(self.records * _SECONDS / seconds))
