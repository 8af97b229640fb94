"""The interface between the job runner and the executors that run its epochs.

The runner hands an executor one epoch plan at a time and gets the rows of that epoch back. An
executor may run every epoch as a job of its own, or send the plans to tasks that live as long as
the job. The runner does not know the difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from firesteel.errors import FiresteelError, JobExecutionError
from firesteel.graph.levels import Levels
from firesteel.graph.stream_graph import StreamGraph
from firesteel.protocol.messages import SlotAck, SlotControl, SlotFailure, decode
from firesteel.protocol.program import JobProgram
from firesteel.protocol.reports import SlotReport
from firesteel.protocol.rows import ACK, FAILURE, OUTPUT
from firesteel.usercode import pickling
from firesteel.usercode.resources import JobResources


@dataclass(frozen=True, slots=True)
class EpochPlan:
    """The control of every slot of every level for one epoch.

    A ``closing`` epoch is the last one of its slots. A plan ``by_force`` is for slots that may still
    be busy with an earlier epoch.
    """

    epoch: int
    controls: tuple[SlotControl, ...]
    closing: bool = False
    by_force: bool = False
    # Seconds until the next epoch is due, or None if no time is known yet.
    due_in: float | None = None

    @property
    def ends_at_once(self) -> bool:
        """The epoch ends with a checkpoint, which should not wait for more records."""
        return any(control.checkpoint_id is not None for control in self.controls)

    def of_level(self, level: int) -> list[SlotControl]:
        return [control for control in self.controls if control.address.level == level]

    def forced(self) -> EpochPlan:
        """Return the same epoch, by force."""
        controls = [
            # Aborting transactions may take as long as the work that is broken off.
            replace(control, address=replace(control.address, by_force=True), abandoned={})
            for control in self.controls
        ]
        return replace(self, controls=tuple(controls), by_force=True)


@dataclass(slots=True)
class EpochRows:
    """Rows that reach the driver at the end of an epoch, sorted by kind.

    ``outputs`` are pairs of a node and its lines or records. ``error`` is raised by the part of the
    epoch that the executor runs in the driver, such as a function that takes DataFrames. ``void``
    are the acks of earlier tries of the epoch, which do not count. ``losses`` are the reasons for
    which those tries ended.
    """

    acks: list[SlotAck] = field(default_factory=list)
    failures: list[SlotFailure] = field(default_factory=list)
    outputs: list[tuple[int, list[Any]]] = field(default_factory=list)
    error: Exception | None = None
    void: list[SlotAck] = field(default_factory=list)
    losses: list[FiresteelError] = field(default_factory=list)

    @staticmethod
    def sort(rows: Iterable[Any]) -> EpochRows:
        """Sort BufferRows, or Spark rows with the same fields. Rows of DataFrames are refused."""
        result = EpochRows()
        for row in rows:
            if row.kind == ACK:
                result.acks.append(decode(row.payload))
            elif row.kind == FAILURE:
                result.failures.append(decode(row.payload))
            elif row.kind == OUTPUT:
                result.outputs.append((row.edge, pickling.loads(row.payload)))
            else:
                raise JobExecutionError(
                    f"the driver received a row of kind {row.kind}, which it does not process"
                )
        return result


@dataclass(frozen=True, slots=True)
class Placement:
    """Places that an executor has prepared for a job.

    ``segment_directory`` takes large state of a job without periodic checkpoints. It is None where
    the driver and the slots share no directory.
    """

    segment_directory: str | None = None
    resources: JobResources = field(default_factory=JobResources)
    cached_files: Mapping[str, str] = field(default_factory=dict)


class EpochBrokenOffError(FiresteelError):
    """The running epoch was waited for as long as ``break_off`` allows."""


class ExecutionFailedError(FiresteelError):
    """No further epoch can run in this attempt. ``reason`` is the error for the user.

    ``void`` are the acks of slots that have ended the epoch although it does not count.
    """

    def __init__(self, reason: FiresteelError, void: Sequence[SlotAck] = ()) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.void = void


class Execution(ABC):
    """One attempt of a job in an executor."""

    @abstractmethod
    def run_epoch(self, plan: EpochPlan) -> EpochRows:
        """Run an epoch in all slots and return its rows.

        Raises ExecutionFailedError or EpochBrokenOffError. After either of them the only plan that
        may follow is a closing one by force.
        """

    @abstractmethod
    def break_off(self, seconds: float) -> None:
        """Wait at most ``seconds`` for the running epoch. Called from any thread or a signal handler."""

    @abstractmethod
    def close(self) -> None:
        """Release everything that belongs to the attempt."""

    def hasten(self) -> None:
        """Let the running epoch end soon, because the next plan is due. Called from any thread.

        The default is for epochs that end by themselves.
        """
        return

    def watch(self, take_report: Callable[[SlotReport], None]) -> None:
        """Pass the reports of slots to a function, in a thread of the execution.

        The default is for slots that report at the end of an epoch only, with their acks.
        """
        return

    def ask(self, level: int, slot: int, what: str, arguments: Mapping[str, Any]) -> Future[Any]:
        """Ask the process of a slot (see ``SlotQuestion``). By default the future has an error."""
        answer: Future[Any] = Future()
        answer.set_exception(
            JobExecutionError(
                "only the slots of streaming jobs in real time answer questions; see the setting "
                "firesteel.execution"
            )
        )
        return answer


class Executor(Protocol):
    """Runs the attempts of one job, one after the other."""

    def place(self) -> Placement:
        """Bring the files of the job to its slots."""

    def start(self, program: JobProgram) -> Execution:
        """Prepare an attempt. The program travels to the slots from here."""

    def reserve(self, graph: StreamGraph, levels: Levels) -> None:
        """Get the slots for attempts with a different parallelism, which ``start`` will begin.

        Raises InsufficientSlotsError if there are too few. Then everything stays as it is.
        """

    def has_ended(self) -> bool:
        """Return True if nothing can run here any more, because the system behind it has died."""

    def close(self) -> None:
        """Release everything that belongs to the job."""
