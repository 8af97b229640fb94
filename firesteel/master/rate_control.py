"""Rate control: a read budget per epoch that follows a target duration."""

from __future__ import annotations

from dataclasses import dataclass

from firesteel.common.configuration import Configuration
from firesteel.config import options
from firesteel.protocol.messages import ReadBudget

# A new job starts small: the cost of a record is not known yet.
_FIRST_BUDGET = 1_000
_SMALLEST_BUDGET = 100
_LARGEST_BUDGET = 50_000_000
# A budget changes at most by these factors from one epoch to the next.
_GROWTH = 8.0
_SHRINKAGE = 0.1

_UNLIMITED_TARGET = 10.0

# The fixed cost of an epoch is the duration of the shortest one, unless even that took longer.
_MOST_FIXED_SECONDS = 0.5


def target_duration(buffer_timeout: int) -> float:
    """Return the seconds an epoch should take: the buffer timeout trades latency for throughput.

    0 asks for the smallest epochs and -1 for the largest; Flink's default of 100 ms lies between.
    """
    if buffer_timeout < 0:
        return _UNLIMITED_TARGET
    return min(0.05 + buffer_timeout * 0.0495, _UNLIMITED_TARGET)


@dataclass(slots=True)
class RateControl:
    """Takes the durations of epochs and returns the read budget of the next one."""

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
        """Scale the budget towards the target, if the epoch used its budget or took too long."""
        self._shortest_seconds = min(self._shortest_seconds, seconds)
        used_budget = records_of_fullest_slot >= self._records * 0.9
        if seconds <= self.target_seconds and not used_budget:
            return
        # Only the time beyond the fixed cost grows with the records.
        shortest = self._shortest_seconds
        fixed = shortest if shortest < min(_MOST_FIXED_SECONDS, self.target_seconds / 2) else 0.0
        factor = (self.target_seconds - fixed) / max(seconds - fixed, 1e-3)
        factor = min(max(factor, _SHRINKAGE), _GROWTH)
        basis = max(records_of_fullest_slot, 1) if factor < 1 else self._records
        self._records = min(max(int(basis * factor), _SMALLEST_BUDGET), _LARGEST_BUDGET)


def rate_control(configuration: Configuration, buffer_timeout: int) -> RateControl:
    """Return the rate control that the settings of a job ask for."""
    target = configuration.get(options.EPOCH_TARGET_DURATION)
    return RateControl(
        target_seconds=target_duration(buffer_timeout)
        if target is None
        else target.total_seconds(),
        max_records=configuration.get(options.EPOCH_MAX_RECORDS),
    )
