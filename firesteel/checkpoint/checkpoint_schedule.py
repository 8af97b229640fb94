"""When the next regular checkpoint is due: interval, pause and concurrency."""

from __future__ import annotations

from firesteel.checkpoint.settings import CheckpointSettings

__all__ = ["CheckpointSchedule"]


class CheckpointSchedule:
    """Checkpoints start an interval apart; one that could not start in time starts when it can."""

    def __init__(self, settings: CheckpointSettings, now: float) -> None:
        self._settings = settings
        self._due = self._after_interval(now)
        self._last_completed = float("-inf")

    def delay(self, now: float, pending: int) -> float | None:
        """Seconds until one may start; None: not before something else has happened."""
        if self._due is None or pending >= self._settings.max_concurrent:
            return None
        earliest = max(self._due, self._last_completed + self._settings.min_pause)
        return max(0.0, earliest - now)

    def triggered(self, now: float) -> None:
        self._due = self._after_interval(now)

    def completed(self, now: float) -> None:
        self._last_completed = now

    def restarted(self, now: float) -> None:
        self._due = self._after_interval(now)

    def _after_interval(self, now: float) -> float | None:
        return None if self._settings.interval is None else now + self._settings.interval
