"""A checkpoint in progress."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from firesteel.checkpoint.metadata import (
    Ancestor,
    CheckpointMetadata,
    OperatorMetadata,
    SnapshotType,
    SubtaskState,
)
from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.rules.requests import SnapshotRequest
from firesteel.checkpoint.rules.tasks import OperatorInfo, TaskAck, TaskId
from firesteel.checkpoint.state_descriptions import StateDescription

__all__ = ["PendingCheckpoint"]


@dataclass(slots=True)
class PendingCheckpoint:
    """A checkpoint whose barrier was sent, and which is not stored yet.

    ``triggered_at``: seconds of the coordinator's clock.
    ``trigger_time``: milliseconds since 1970.
    ``awaited``: tasks without an ack.
    ``metadata``: set when all acks have arrived, and the checkpoint is being written. Slots write
    the files of a savepoint, then the driver writes the metadata.
    """

    checkpoint_id: int
    type: SnapshotType
    epoch: int
    triggered_at: float
    trigger_time: int
    awaited: set[TaskId]
    request: SnapshotRequest | None = None
    acks: dict[TaskId, TaskAck] = field(default_factory=dict)
    coordinators: dict[str, Payload] = field(default_factory=dict)
    metadata: CheckpointMetadata | None = None
    written_since: float = 0.0

    @property
    def is_acknowledged(self) -> bool:
        return not self.awaited

    @property
    def is_being_written(self) -> bool:
        return self.metadata is not None

    @property
    def target(self) -> str | None:
        """The directory of a savepoint."""
        return None if self.request is None else self.request.target

    @property
    def is_native(self) -> bool:
        """True for a savepoint in the format of the state backend."""
        return self.request is not None and self.request.native

    @property
    def title(self) -> str:
        return f"{self.type.value} {self.checkpoint_id}"

    def acknowledge(self, ack: TaskAck) -> bool:
        """Take an ack. Returns False for a second ack of the same task."""
        if ack.task in self.acks:
            return False
        self.acks[ack.task] = ack
        self.awaited.discard(ack.task)
        return True

    def finalize(
        self,
        operators: Sequence[OperatorInfo],
        job_id: str,
        job_name: str,
        completion_time: int,
        lineage: tuple[Ancestor, ...] = (),
        run: int = 0,
    ) -> CheckpointMetadata:
        """Create the metadata from the acks."""
        self.metadata = CheckpointMetadata(
            checkpoint_id=self.checkpoint_id,
            type=self.type,
            job_id=job_id,
            job_name=job_name,
            epoch=self.epoch,
            trigger_time=self.trigger_time,
            completion_time=completion_time,
            operators=tuple(self._operator(operator) for operator in operators),
            lineage=lineage,
            run=run,
        )
        return self.metadata

    def _operator(self, info: OperatorInfo) -> OperatorMetadata:
        acks = [self.acks.get((info.vertex, subtask)) for subtask in range(info.parallelism)]
        # A task that finished before the barrier may send no ack.
        nothing = SubtaskState(finished=True)
        return OperatorMetadata(
            operator_id=info.operator_id,
            uid=info.uid,
            name=info.name,
            parallelism=info.parallelism,
            max_parallelism=info.max_parallelism,
            subtasks=tuple(
                nothing if ack is None else ack.operators.get(info.operator_id, SubtaskState())
                for ack in acks
            ),
            states=_merged(ack.states.get(info.operator_id, ()) for ack in acks if ack is not None),
            coordinator=self.coordinators.get(info.operator_id),
        )


def _merged(
    described: Iterable[tuple[StateDescription, ...]],
) -> tuple[StateDescription, ...]:
    """Merge the descriptions. A subtask without records may not know all states."""
    states = {state.name: state for states in described for state in states}
    return tuple(states[name] for name in sorted(states))
