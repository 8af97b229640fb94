"""A whole job in one process, without Spark: the real job master drives the real slots.

Rows travel between levels as Spark would carry them. What Spark leaves open (the order of blocks
from different slots, where batches are cut, which attempt of a task counts) is decided by a seed
and by the faults a test injects.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

from firesteel.common.configuration import Configuration
from firesteel.common.execution_config import ExecutionConfig
from firesteel.common.job_status import JobStatus
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system.storage import qualify
from firesteel.datastream.data_stream.stream_base import StreamBase
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.stream_execution_environment.job_compiler import CompiledJob
from firesteel.errors import InvalidProgramError, JobExecutionError
from firesteel.graph.operator_specs import CollectSpec, SourceSpec
from firesteel.graph.transformations import Transformation
from firesteel.master.epoch_rows import EpochRows
from firesteel.master.job_master import EpochPlan, JobMaster
from firesteel.master.rate_control import RateControl
from firesteel.master.source_coordinator import SourceCoordinator
from firesteel.state.backend_settings import settings_of
from firesteel.task.driver_commit import commit_prepared
from firesteel.task.messages import ReadBudget, SlotControl
from firesteel.task.program import JobProgram, PackedProgram
from firesteel.task.rows import BufferRow, rows_of, to_record_batch
from firesteel.task.slot import Slot, control_row

Place = tuple[int, int]
"""(level, slot)"""

_MOST_EPOCHS = 100_000


class Fault(Enum):
    """What happens to the task of one slot in one epoch."""

    RETRY = "the task succeeds, but its output is lost: it runs again in the same process"
    BREAK_OFF = "the task breaks off in the middle, and runs again in the same process"
    LOSE_INPUT = "the task's input breaks off in the middle; it runs again in the same process"
    LOSE_HOST = "the process of the slot is gone before the epoch: a new one restores"
    LOSE_HOST_LATE = "the process is gone after the task's work: it all happens again in a new one"


Faults = Mapping[Place, Fault]


@dataclass(slots=True)
class _Budgets(RateControl):
    """Says how many records each epoch may read, whatever it takes."""

    target_seconds: float = 0.0
    records: Iterable[int] = (1000,)
    _remaining: Any = None

    def budget(self) -> ReadBudget:
        if self._remaining is None:
            self._remaining = cycle(self.records)
        return ReadBudget(next(self._remaining), float("inf"))

    def epoch_took(self, seconds: float, records_of_fullest_slot: int) -> None:
        """A script does not learn."""


@dataclass(slots=True)
class _Collected:
    """The driver object of a collected stream."""

    records: list[Any] = field(default_factory=list)

    def add(self, records: list[Any]) -> None:
        self.records += records


class JobHarness:
    """Runs the job that ``program(environment)`` builds.

    Streams that ``program`` returns (one, or a tuple of them) are collected. ``records_per_epoch``
    is what each source may read in an epoch, or a list of such numbers, taken in turn.

    >>> def program(env):
    ...     words = env.from_collection(["to", "be", "or", "not", "to", "be"])
    ...     return words.key_by(lambda word: word).fold(0, lambda count, _: count + 1)
    >>> harness = JobHarness(program, parallelism=2, records_per_epoch=2)
    >>> harness.run()
    >>> sorted(harness.collected)
    [1, 1, 1, 1, 2, 2]
    """

    def __init__(
        self,
        program: Callable[[StreamExecutionEnvironment], Any] | CompiledJob,
        *,
        parallelism: int = 1,
        records_per_epoch: int | Iterable[int] = 1000,
        seed: int = 0,
        batch_bytes: int = 1 << 20,
        inline_threshold: int = 64 * 1024,
        configuration: Configuration | None = None,
    ) -> None:
        self._collected: list[_Collected] = []
        job = program if isinstance(program, CompiledJob) else None
        self._job = job or self._compile(program, parallelism, configuration)
        self._graph = self._job.stream_graph
        self._random = Random(seed)
        self._batch_bytes = batch_bytes
        self._directory = tempfile.TemporaryDirectory(prefix="firesteel-harness-")
        self._batch = self._job.settings.runtime_mode is RuntimeExecutionMode.BATCH
        program_of_job = JobProgram(
            job_id="harness",
            job_name=self._job.settings.job_name,
            attempt=0,
            levels=self._job.levels,
            segment_directory=self._directory.name,
            inline_threshold=inline_threshold,
            batch=self._batch,
            cached_files={
                file.name: qualify(file.path) for file in self._job.settings.cached_files
            },
            state_backend=settings_of(self._job.settings.configuration),
            auto_watermark_interval=ExecutionConfig(
                self._job.settings.configuration
            ).get_auto_watermark_interval(),
        )
        # Every slot unpacks its own: functions are never shared between processes.
        self._packed = PackedProgram.pack(program_of_job)
        self._slots: dict[Place, Slot] = {}
        self._now = 0.0
        budgets = (
            [records_per_epoch] if isinstance(records_per_epoch, int) else list(records_per_epoch)
        )
        self.master = JobMaster(
            program_of_job,
            {
                node.id: SourceCoordinator(node.id, node.spec.source, node.parallelism)
                for node in self._graph.nodes.values()
                if isinstance(node.spec, SourceSpec)
            },
            _Budgets(records=budgets),
        )
        self.epoch = 0
        #: The lines that print() wrote.
        self.printed: list[str] = []

    def _compile(
        self, program: Any, parallelism: int, configuration: Configuration | None
    ) -> CompiledJob:
        environment = StreamExecutionEnvironment(configuration).set_parallelism(parallelism)
        returned = program(environment)
        streams = returned if isinstance(returned, tuple) else (returned,)
        collects = []
        for stream in streams:
            if not isinstance(stream, StreamBase):
                continue
            self._collected.append(_Collected())
            collects.append(
                Transformation(
                    name="Data stream collect sink",
                    spec=CollectSpec(),
                    inputs=(stream._origins,),
                    driver_object=self._collected[-1],
                    parallelism=stream._common_parallelism(),
                )
            )
        return environment._compile("harness", *collects)

    # Running

    @property
    def status(self) -> JobStatus:
        return self.master.status

    def run(self, faults: Mapping[int, Faults] | None = None) -> None:
        """Run to the end; ``faults`` by epoch (from 1). A failed job raises its error."""
        for _ in range(_MOST_EPOCHS):
            if self.status.is_terminal_state():
                break
            self.run_epoch((faults or {}).get(self.epoch + 1))
        else:
            raise JobExecutionError(f"the job has not ended after {_MOST_EPOCHS} epochs")
        if self.master.failure is not None:
            raise self.master.failure

    def run_epoch(self, faults: Faults | None = None) -> bool:
        """Run one epoch, if the job is not over; whether it goes on after that."""
        if self._batch:
            self._run_batch(faults or {})
            return False
        delay = self.master.delay(self._now)
        if delay is None:
            return False
        self._now += delay
        plan = self.master.plan_epoch(self._now)
        self.epoch = plan.epoch
        rows = self._run_levels(plan, faults or {}, last=False)
        if not rows.failures:
            rows.deliver(self._graph, self.printed.extend)
        self._now += 0.001
        self.master.epoch_ended(rows.acks, rows.failures, self._now)
        return not self.status.is_terminal_state()

    def now_millis(self) -> int:
        """Processing time: it jumps from epoch to epoch, to the time the next one is due."""
        return round(self._now * 1000)

    def cancel(self) -> None:
        """Ask for the end; the next epoch closes the slots."""
        self.master.cancel()

    def _run_batch(self, faults: Faults) -> None:
        plan = self.master.plan_batch()
        self.epoch = plan.epoch
        rows = self._run_levels(plan, faults, last=True)
        if not rows.failures:
            rows.deliver(self._graph, self.printed.extend)
        self.master.batch_ended(rows.acks, rows.failures)
        commit_prepared(self._graph, "harness", self.master.committables())

    # What came out

    @property
    def collected(self) -> list[Any]:
        """The records of the one stream that the program returned."""
        if len(self._collected) != 1:
            raise InvalidProgramError(
                f"the program returned {len(self._collected)} streams; use collected_by_stream"
            )
        return self._collected[0].records

    @property
    def collected_by_stream(self) -> list[list[Any]]:
        """The records of each stream that the program returned."""
        return [stream.records for stream in self._collected]

    def metrics(self) -> dict[str, Any]:
        """The user's metrics, merged over all subtasks."""
        return self.master.user_metrics()

    def places(self) -> list[Place]:
        """Every (level, slot) of the job: where faults can be injected."""
        return [
            (level, slot)
            for level, slots in enumerate(self._job.levels.slots)
            for slot in range(slots)
        ]

    def files(self) -> list[Path]:
        """The state segments that are kept in files."""
        return sorted(Path(self._directory.name).iterdir())

    # Levels and slots

    def _run_levels(self, plan: EpochPlan, faults: Faults, *, last: bool) -> EpochRows:
        slots = self._job.levels.slots
        later = [control for control in plan.controls if control.address.level > 0]
        outputs: list[list[BufferRow]] = []
        # The control rows of later levels ride with any slot of level 0, ahead of its own rows.
        carrier = self._random.randrange(slots[0])
        for control in plan.of_level(0):
            rows = self._run_slot(control, None, faults, last=last)
            if control.address.slot == carrier:
                rows = [*map(control_row, later), *rows]
            outputs.append(rows)
        for level in range(1, len(slots)):
            inputs = self._exchange(outputs, slots[level])
            outputs = [
                self._run_slot(control, inputs[control.address.slot], faults, last=last)
                for control in plan.of_level(level)
            ]
        return EpochRows.sort(row for rows in outputs for row in rows)

    def _exchange(self, outputs: list[list[BufferRow]], slots: int) -> list[list[BufferRow]]:
        """Every target gets its rows of each upstream slot as a block; blocks in any order."""
        inputs: list[list[BufferRow]] = []
        for target in range(slots):
            blocks = [[row for row in rows if row.target % slots == target] for rows in outputs]
            self._random.shuffle(blocks)
            inputs.append([row for block in blocks for row in block])
        return inputs

    def _run_slot(
        self, control: SlotControl, rows: list[BufferRow] | None, faults: Faults, *, last: bool
    ) -> list[BufferRow]:
        place = (control.address.level, control.address.slot)
        fault = faults.get(place)
        if fault in (Fault.LOSE_HOST, Fault.LOSE_HOST_LATE):
            if fault is Fault.LOSE_HOST_LATE:
                self._attempt(place, control, rows, last=last)
            self._slots.pop(place, None)
        elif fault is Fault.RETRY:
            self._attempt(place, control, rows, last=last)
        elif fault in (Fault.BREAK_OFF, Fault.LOSE_INPUT):
            self._attempt(place, control, rows, last=last, breaks=fault)
        output = self._attempt(place, control, rows, last=last)
        if self._slots[place].closed:
            del self._slots[place]
        return output

    def _attempt(
        self,
        place: Place,
        control: SlotControl,
        rows: list[BufferRow] | None,
        *,
        last: bool,
        breaks: Fault | None = None,
    ) -> list[BufferRow]:
        """One attempt of a task; the rows it gave until it ended or broke off."""
        slot = self._slots.get(place)
        if slot is None or slot.closed:
            slot = self._slots[place] = Slot(
                self._packed.unpack(),
                *place,
                renew=self._packed.unpack,
                now_millis=self.now_millis,
            )
            slot._batcher.limit = self._batch_bytes
        received: Iterable[BufferRow] = self._through_arrow(rows or [])
        if breaks is Fault.LOSE_INPUT:
            received = _breaking(received, self._random.randint(0, len(rows or [])))
        own = control if place[0] == 0 else None
        address = replace(control.address, level=place[0], slot=place[1])
        running = slot.run_epoch(address, received, own, last=last)
        output: list[BufferRow] = []
        left = self._random.randint(1, 4) if breaks is Fault.BREAK_OFF else -1
        for batch in running:
            output += rows_of(batch)
            left -= 1
            if left == 0:
                running.close()  # type: ignore[attr-defined]  # it is a generator
                break
        return output

    def _through_arrow(self, rows: list[BufferRow]) -> Iterable[BufferRow]:
        """The rows in batches that are cut anywhere, encoded and decoded as for Spark."""
        start = 0
        while start < len(rows):
            stop = start + self._random.randint(1, 64)
            yield from rows_of(to_record_batch(rows[start:stop]))
            start = stop


def _breaking(rows: Iterable[BufferRow], after: int) -> Iterable[BufferRow]:
    for number, row in enumerate(rows):
        if number == after:
            break
        yield row
    raise ConnectionResetError("the input broke off")
