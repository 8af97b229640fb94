"""RollingPolicy: when a part file is closed and the next one begun."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

__all__ = ["DefaultRollingPolicy", "OnCheckpointRollingPolicy", "PartFileInfo", "RollingPolicy"]


class PartFileInfo(Protocol):
    """What a policy may ask about the open part file. Times are in ms."""

    def get_bucket_id(self) -> str: ...

    def get_creation_time(self) -> int: ...

    def get_size(self) -> int: ...

    def get_last_update_time(self) -> int: ...


class RollingPolicy(ABC):
    """Decides whether the open part file of a bucket ends. Derive from it for a rule of your own."""

    def should_roll_on_checkpoint(self, part_file: PartFileInfo) -> bool:
        """Asked at every checkpoint."""
        return False

    @abstractmethod
    def should_roll_on_event(self, part_file: PartFileInfo, element: Any) -> bool:
        """Asked before a record is written: True puts it into a new file."""

    def should_roll_on_processing_time(self, part_file: PartFileInfo, current_time: int) -> bool:
        """Asked in the sink's bucket check interval."""
        return False

    @staticmethod
    def default_rolling_policy(
        part_size: int = 1024 * 1024 * 128,
        rollover_interval: int = 60 * 1000,
        inactivity_interval: int = 60 * 1000,
    ) -> DefaultRollingPolicy:
        """Roll by size (bytes), by age and by time since the last record (ms)."""
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Roll at every checkpoint, and only then."""
        return OnCheckpointRollingPolicy()


class DefaultRollingPolicy(RollingPolicy):
    def __init__(self, part_size: int, rollover_interval: int, inactivity_interval: int) -> None:
        for name, value in (
            ("part_size", part_size),
            ("rollover_interval", rollover_interval),
            ("inactivity_interval", inactivity_interval),
        ):
            if value <= 0:
                raise ValueError(f"{name} must be positive, got {value}")
        self.part_size = part_size
        self._rollover_interval = rollover_interval
        self._inactivity_interval = inactivity_interval

    def should_roll_on_checkpoint(self, part_file: PartFileInfo) -> bool:
        return part_file.get_size() > self.part_size

    def should_roll_on_event(self, part_file: PartFileInfo, element: Any) -> bool:
        return part_file.get_size() > self.part_size

    def should_roll_on_processing_time(self, part_file: PartFileInfo, current_time: int) -> bool:
        return (
            current_time - part_file.get_creation_time() >= self._rollover_interval
            or current_time - part_file.get_last_update_time() >= self._inactivity_interval
        )


class OnCheckpointRollingPolicy(RollingPolicy):
    def should_roll_on_checkpoint(self, part_file: PartFileInfo) -> bool:
        return True

    def should_roll_on_event(self, part_file: PartFileInfo, element: Any) -> bool:
        return False
