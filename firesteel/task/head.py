"""The head of a subtask: the place where its records enter.

Most subtasks are fed by their input gate. Sources, DataFrame sources and the heads of iterations
bring a head of their own, in the module of their operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from firesteel.errors import JobExecutionError
from firesteel.protocol.messages import ReadBudget, SlotControl, SourceStatus
from firesteel.state.changelog import SegmentStore
from firesteel.task.exchange.input_gate import InputGate


class SubtaskHead:
    """Feeds a subtask. The slot drives it epoch by epoch."""

    reads: ClassVar[bool] = False
    """It reads records in each epoch, and shares the read budget of the slot."""

    is_origin: ClassVar[bool] = False
    """Nothing comes before it: event time and barriers begin here."""

    records_read: int = 0
    """Records of this epoch that did not come through the gate."""

    status: SourceStatus | None = None
    """The report of a source after it has read."""

    @property
    def finished(self) -> bool:
        """The input has ended for good."""
        raise NotImplementedError

    def restore(self) -> None:
        """Called after the operators and the gate have been restored."""

    def begin_epoch(self) -> None:
        self.records_read = 0

    def apply(self, control: SlotControl) -> None:
        """Take what the control row has for this head."""

    def read_epoch(self, budget: ReadBudget, store: SegmentStore, *, drain: bool) -> Iterator[None]:
        """Read and emit in chunks, and pause after each so that the slot can send rows.

        drain: the input ends with this epoch.
        """
        return iter(())

    def read_some(self, limit: int) -> float | None:
        """Read a chunk without waiting, up to ``limit`` records of this epoch.

        Return the seconds until there may be more, or None if that needs an event.
        """
        return None

    @property
    def needs_report(self) -> bool:
        """After ``read_some`` returned None: the driver does not know of this yet."""
        return False

    def stop_reading(self, *, drain: bool) -> None:
        """Note the progress of ``read_some`` at the end of an epoch. ``drain``: the input ends."""

    def accept_external(self, payload: bytes) -> None:
        """Take rows that Spark has read."""
        raise JobExecutionError("rows of a DataFrame arrived at a subtask that reads no DataFrame")

    def end_epoch(self, *, last: bool) -> None:
        """All rows of the epoch have arrived.

        last: no epoch follows.
        """


class GateHead(SubtaskHead):
    """Records come from other subtasks, through the gate."""

    def __init__(self, gate: InputGate) -> None:
        self.gate = gate

    @property
    def finished(self) -> bool:
        return self.gate.finished

    def end_epoch(self, *, last: bool) -> None:
        self.gate.check_complete()
