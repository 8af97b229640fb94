"""Which run of every slot the epoch before was confirmed with.

A slot hears of it from the rows that each slot before it sends, so what is told grows with the product of both
levels: a slot gets its own run, and of the levels behind it what it has to pass on.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import getrandbits

# Four bytes; 0 is not known, as before the first epoch.
_RUN_ID = "I"
_UNKNOWN = 0


def new_run_id() -> int:
    """Tells two attempts at one epoch of one slot apart."""
    return getrandbits(32) or 1


@dataclass(frozen=True, slots=True)
class ConfirmedRuns:
    """As one slot has to know them: its own, and those of later levels by level."""

    own: int = _UNKNOWN
    later: Mapping[int, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Mapping[tuple[int, int], int], slots: tuple[int, ...]) -> ConfirmedRuns:
        """``runs`` by (level, slot), for the driver; ``slots`` has their number for each level."""
        return cls(
            later={
                level: array(
                    _RUN_ID, (runs.get((level, slot), _UNKNOWN) for slot in range(count))
                ).tobytes()
                for level, count in enumerate(slots)
            }
        )

    def told_to(self, level: int, slot: int) -> ConfirmedRuns:
        packed = self.later.get(level)
        own = _UNKNOWN if packed is None else array(_RUN_ID, packed)[slot]
        return ConfirmedRuns(
            own, {later: self.later[later] for later in self.later if later > level}
        )

    def includes(self, run_id: int) -> bool:
        return self.own in (run_id, _UNKNOWN)
