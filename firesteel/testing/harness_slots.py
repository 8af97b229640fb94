"""The executor of a harness: slots in one process, without Spark and slot hosts.

Rows are encoded between levels as they are for Spark. Spark does not define the order of blocks
from different slots, the size of batches, or the task attempt whose output is used. In a harness, a
seed and the faults of a test determine them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from random import Random

import pyarrow as pa

from firesteel.graph.levels import Levels
from firesteel.graph.stream_graph import StreamGraph
from firesteel.protocol.execution import EpochPlan, EpochRows, Execution, Placement
from firesteel.protocol.messages import SlotControl, SubtaskHandle
from firesteel.protocol.program import JobProgram, PackedProgram
from firesteel.protocol.row_order import RowOrder
from firesteel.protocol.rows import BufferRow, RowBatcher, rows_of, to_record_batch
from firesteel.stability import public_evolving
from firesteel.state.changelog import SegmentStore
from firesteel.task.slot import Slot, control_row
from firesteel.task.state.savepoint_writing import Join, Spawn, in_thread

Place = tuple[int, int]
"""(level, slot)"""

EPOCH_SECONDS = 0.001


@public_evolving
class Fault(Enum):
    """A fault of a task in an epoch, for ``JobHarness.run()``. Not in PyFlink.

    >>> from firesteel.testing import Fault, JobHarness
    >>> harness = JobHarness(lambda env: env.from_sequence(1, 4), records_per_epoch=2)
    >>> harness.run(faults={2: {place: Fault.LOSE_HOST for place in harness.places()}})
    >>> harness.collected
    [1, 2, 3, 4]
    """

    RETRY = "the task succeeds, but its output is lost; the task runs again in the same process"
    BREAK_OFF = "the task is interrupted halfway, and runs again in the same process"
    LOSE_INPUT = "the input of the task ends halfway; the task runs again in the same process"
    LOSE_HOST = "the process of the slot dies before the epoch; a new process restores the slot"
    LOSE_HOST_LATE = "the process dies after the task; the task runs again in a new process"
    ZOMBIE = "a new process replaces the old one, but the old one continues to run"


Faults = Mapping[Place, Fault]


class HarnessProcess:
    """The process of a slot. What it does in the background ends with it."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self.is_alive = True

    def spawn(self, work: Iterator[None]) -> Join:
        return self._spawn(self._while_alive(work))

    def _while_alive(self, work: Iterator[None]) -> Iterator[None]:
        while self.is_alive:
            try:
                next(work)
            except StopIteration:
                return
            yield


class HarnessSlots(Execution):
    """The slots of one attempt. ``store`` replaces the slots' own segment stores.

    ``pass_time`` lets the clock of the job advance. ``before_close`` is called before the slots
    close. ``spawn`` replaces the threads that write savepoints.
    """

    def __init__(
        self,
        program: JobProgram,
        random: Random,
        batch_bytes: int,
        now_millis: Callable[[], int],
        store: SegmentStore | None = None,
        *,
        pass_time: Callable[[float], None],
        before_close: Callable[[], None],
        spawn: Spawn = in_thread,
    ) -> None:
        # Each slot unpacks its own copy, because processes never share functions.
        self._packed = PackedProgram.pack(program)
        self._levels = program.levels.slots
        self._batch = program.batch
        #: A process that is lost sends the job back to the last epoch, not to a checkpoint.
        self.epochs_are_exact = program.epochs_are_exact
        self._transactional = program.transactional_nodes
        self._orders = [
            RowOrder.of_level(program.levels, level) if program.batch else None
            for level in range(len(self._levels))
        ]
        self._let_time_pass = pass_time
        self._before_close = before_close
        self._spawn = spawn
        self._random = random
        self._batch_bytes = batch_bytes
        self._now_millis = now_millis
        self._store = store
        self._slots: dict[Place, Slot] = {}
        self._processes: dict[Place, HarnessProcess] = {}
        self._handles: dict[Place, Mapping[int, SubtaskHandle]] = {}
        self._zombies: list[Iterator[pa.RecordBatch]] = []
        #: Faults of the next epoch.
        self.faults: Faults = {}
        #: The last epoch that ran.
        self.epoch = 0

    def places(self) -> list[Place]:
        return [(level, slot) for level, slots in enumerate(self._levels) for slot in range(slots)]

    def run_epoch(self, plan: EpochPlan) -> EpochRows:
        self.epoch = plan.epoch
        faults, self.faults = self.faults, {}
        rows = self._run_levels(plan, faults, last=self._batch)
        self._let_time_pass(EPOCH_SECONDS)
        return rows

    def break_off(self, seconds: float) -> None:
        """Do nothing: no epoch is running while the code of a test runs."""

    def close(self) -> None:
        self._before_close()
        self.let_zombies_work()
        self._end_processes(self.places())

    def _end_processes(self, places: Collection[Place]) -> None:
        for place in places:
            process = self._processes.get(place)
            if process is not None:
                process.is_alive = False

    def _new_process(self, place: Place) -> HarnessProcess:
        process = self._processes[place] = HarnessProcess(self._spawn)
        return process

    def _fetch(self, control: SlotControl) -> Mapping[int, SubtaskHandle]:
        """Return the handles of a slot, as the driver does it for a slot without state."""
        return self._handles[control.address.level, control.address.slot]

    def _run_levels(self, plan: EpochPlan, faults: Faults, *, last: bool) -> EpochRows:
        self._handles = {(c.address.level, c.address.slot): c.handles for c in plan.controls}
        plan = replace(plan, controls=tuple(replace(c, handles={}) for c in plan.controls))
        later = [control for control in plan.controls if control.address.level > 0]
        outputs: list[list[BufferRow]] = []
        # One slot of level 0 sends the control rows of later levels before its own rows.
        carrier = self._random.randrange(self._levels[0])
        for control in plan.of_level(0):
            rows = self._run_slot(control, None, faults, last=last)
            if control.address.slot == carrier:
                rows = [*map(control_row, later), *rows]
            outputs.append(rows)
        for level in range(1, len(self._levels)):
            inputs = self._exchange(outputs, level)
            outputs = [
                self._run_slot(control, inputs[control.address.slot], faults, last=last)
                for control in plan.of_level(level)
            ]
        return EpochRows.sort(row for rows in outputs for row in rows)

    def let_zombies_work(self) -> None:
        """Run the abandoned attempts of the epoch to their end, and ignore their output."""
        zombies, self._zombies = self._zombies, []
        for zombie in zombies:
            for _ in zombie:
                pass

    def _exchange(self, outputs: list[list[BufferRow]], level: int) -> list[list[BufferRow]]:
        """Give each target one block of rows per upstream slot. The order of blocks is random.

        The rows of a batch job are sorted.
        """
        slots, order = self._levels[level], self._orders[level]
        inputs: list[list[BufferRow]] = []
        for target in range(slots):
            blocks = [[row for row in rows if row.target % slots == target] for rows in outputs]
            self._random.shuffle(blocks)
            rows = [row for block in blocks for row in block]
            inputs.append(rows if order is None else sorted(rows, key=order.place))
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
            self._end_processes([place])
        elif fault is Fault.RETRY:
            for _ in range(self._random.randint(1, 2)):
                self._attempt(place, control, rows, last=last)
        elif fault in (Fault.BREAK_OFF, Fault.LOSE_INPUT):
            self._attempt(place, control, rows, last=last, breaks=fault)
        elif fault is Fault.ZOMBIE:
            self._give_up(place, control, rows, last=last)
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
        """Run one attempt of a task. Returns its rows up to its end or its interruption."""
        received = self._through_arrow(rows or [])
        if breaks is Fault.LOSE_INPUT:
            received = _breaking(received, self._random.randint(0, len(rows or [])))
        running = self._start(place, control, received, last=last)
        output: list[BufferRow] = []
        left = self._random.randint(1, 4) if breaks is Fault.BREAK_OFF else -1
        try:
            for batch in running:
                output += rows_of(batch)
                left -= 1
                if left == 0:
                    running.close()  # type: ignore[attr-defined]  # it is a generator
                    break
        except ConnectionResetError:
            # The slot had failed before, and read on.
            if breaks is not Fault.LOSE_INPUT:
                raise
        return output

    def _give_up(
        self, place: Place, control: SlotControl, rows: list[BufferRow] | None, *, last: bool
    ) -> None:
        running = self._start(place, control, self._through_arrow(rows or []), last=last)
        if self._random.random() < 0.5:
            next(running, None)
        del self._slots[place]
        self._zombies.append(running)

    def _start(
        self, place: Place, control: SlotControl, rows: Iterable[BufferRow], *, last: bool
    ) -> Iterator[pa.RecordBatch]:
        slot = self._slots.get(place)
        if slot is None or slot.closed:
            slot = self._slots[place] = self._new_slot(place)
        own = control if place[0] == 0 else None
        address = replace(control.address, level=place[0], slot=place[1])
        return slot.run_epoch(address, rows, own, last=last)

    def _new_slot(self, place: Place) -> Slot:
        unpack = self._packed.unpack
        return Slot(
            unpack(),
            *place,
            renew=unpack,
            now_millis=self._now_millis,
            store=self._store,
            batcher=RowBatcher(limit=self._batch_bytes),
            spawn=self._new_process(place).spawn,
            fetch=self._fetch,
        )

    def _through_arrow(self, rows: list[BufferRow]) -> Iterable[BufferRow]:
        """Encode rows in batches of random size, as for Spark, and decode them again."""
        start = 0
        while start < len(rows):
            stop = start + self._random.randint(1, 64)
            yield from rows_of(to_record_batch(rows[start:stop]))
            start = stop


class HarnessExecutor:
    """Runs the attempts of one job in slots of this process. ``slots`` is from the last attempt."""

    def __init__(
        self, placement: Placement, make_slots: Callable[[JobProgram], HarnessSlots]
    ) -> None:
        self._placement = placement
        self._make_slots = make_slots
        self.slots: HarnessSlots

    def place(self) -> Placement:
        return self._placement

    def start(self, program: JobProgram) -> HarnessSlots:
        self.slots = self._make_slots(program)
        return self.slots

    def reserve(self, graph: StreamGraph, levels: Levels) -> None:
        """Do nothing: the slots of this process are not counted."""

    def has_ended(self) -> bool:
        return False

    def close(self) -> None:
        """Do nothing: the harness deletes the directory of the job."""


def _breaking(rows: Iterable[BufferRow], after: int) -> Iterable[BufferRow]:
    for number, row in enumerate(rows):
        if number == after:
            break
        yield row
    raise ConnectionResetError("the fault LOSE_INPUT ended the input of the task")
