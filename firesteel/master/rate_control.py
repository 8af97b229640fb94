"""How much an epoch may read: a budget of records that follows a target duration."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.protocol.messages import ReadBudget

# A new job starts small: nobody knows yet what a record costs.
_FIRST_BUDGET = 1_000
_SMALLEST_BUDGET = 100
_LARGEST_BUDGET = 50_000_000
# A budget changes at most by these factors from one epoch to the next.
_GROWTH = 8.0
_SHRINKAGE = 0.1

_UNLIMITED_TARGET = 10.0

# An epoch costs something whatever it reads: what the shortest took, unless even that took longer.
_MOST_FIXED_SECONDS = 0.5


def target_duration(buffer_timeout: int) -> float:
    """Seconds an epoch should take: the buffer timeout trades latency for throughput.

    0 asks for the smallest epochs and -1 for the largest; Flink's default of 100 ms lies between.
    """
    if buffer_timeout < 0:
        return _UNLIMITED_TARGET
    return min(0.05 + buffer_timeout * 0.0495, _UNLIMITED_TARGET)


@dataclass(slots=True)
class RateControl:
    """Feed it what epochs took; it says what the next may read."""

    target_seconds: float
    max_records: int | None = None
    _records: int = _FIRST_BUDGET
    _shortest_seconds: float = float("inf")

    def budget(self) -> ReadBudget:
        records = self._records
        if self.max_records is not None:
            records = min(records, self.max_records)
        return ReadBudget(records=records, seconds=self.target_seconds)

    def epoch_took(self, seconds: float, records_of_fullest_slot: int) -> None:
        """Scale by how far the epoch was from the target, if it used its budget or overran."""
        self._shortest_seconds = min(self._shortest_seconds, seconds)
        used_budget = records_of_fullest_slot >= self._records * 0.9
        if seconds <= self.target_seconds and not used_budget:
            return
        # Only what an epoch takes beyond its fixed cost grows with the records.
        shortest = self._shortest_seconds
        fixed = shortest if shortest < min(_MOST_FIXED_SECONDS, self.target_seconds / 2) else 0.0
        factor = (self.target_seconds - fixed) / max(seconds - fixed, 1e-3)
        factor = min(max(factor, _SHRINKAGE), _GROWTH)
        basis = max(records_of_fullest_slot, 1) if factor < 1 else self._records
        self._records = min(max(int(basis * factor), _SMALLEST_BUDGET), _LARGEST_BUDGET)
