"""How the checkpoint of one subtask went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firesteel.checkpoint.tasks import TaskTiming

__all__ = ["SubtaskStats"]


@dataclass(frozen=True, slots=True)
class SubtaskStats:
    """``ack_time`` is in milliseconds since 1970, sizes are bytes."""

    vertex: int
    vertex_name: str
    index: int
    parallelism: int
    is_source: bool
    ack_time: int
    timing: TaskTiming
    state_size: int
    checkpointed_size: int

    @property
    def title(self) -> str:
        return f"'{self.vertex_name}' ({self.index + 1}/{self.parallelism})"

    def summary(self) -> dict[str, Any]:
        """JSON with the names that Flink's REST interface has; durations are milliseconds."""
        return {
            "index": self.index,
            "status": "completed",
            "ack_timestamp": self.ack_time,
            "end_to_end_duration": round(self.timing.total * 1000),
            "start_delay": round(self.timing.start_delay * 1000),
            "alignment": {"duration": round(self.timing.alignment * 1000)},
            "checkpoint": {
                "sync": round(self.timing.sync * 1000),
                "async": round(self.timing.asynchronous * 1000),
            },
            "state_size": self.state_size,
            "checkpointed_size": self.checkpointed_size,
        }
