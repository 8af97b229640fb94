"""Live slots of a harness: all levels work at the same time, in one thread.

Spark's pipelined shuffle keeps only the order of rows between two slots. Here a seed chooses the
slot that works next, and the slot from which it gets its next rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator

from firesteel.errors import JobExecutionError
from firesteel.protocol.execution import EpochPlan, EpochRows, ExecutionFailedError
from firesteel.protocol.live_round import LiveRound, LiveRounds, Place, retried
from firesteel.protocol.messages import Credits, EndEpoch, Message, SlotAck, decode
from firesteel.protocol.rows import CREDITS, BufferRow
from firesteel.task.live_slot import InboxClosedError, LiveSlot, Rows
from firesteel.testing.harness_slots import EPOCH_SECONDS, Fault, Faults, HarnessSlots

# Faults with which a process ends, so that its slot cannot even close its functions.
_LOSSES = (Fault.LOSE_HOST, Fault.LOSE_HOST_LATE, Fault.ZOMBIE)
# Guards against slots that never answer.
_MOST_STEPS = 1_000_000


class HarnessLiveSlots(HarnessSlots):
    """The live slots of one attempt. A fault of one of them ends the work of all, as on Spark."""

    _live: dict[Place, _RunningSlot]
    _rounds: LiveRounds

    def run_epoch(self, plan: EpochPlan) -> EpochRows:
        self.epoch = plan.epoch
        faults, self.faults = self.faults, {}
        if not hasattr(self, "_live"):
            self._start_all()
        void: list[SlotAck] = []
        if faults and not plan.closing:
            for _ in range(self._random.randint(1, 2) if self.epochs_are_exact else 1):
                acks = self._suffer(plan, faults).acks
                void += acks
                plan = retried(plan, acks, self._transactional)
            if not self.epochs_are_exact:
                raise ExecutionFailedError(
                    JobExecutionError(f"the processes of slots {sorted(faults)} were lost"), void
                )
        rows = self._run_round(plan, _MOST_STEPS)
        rows.void = void
        self._let_time_pass(EPOCH_SECONDS)
        return rows

    def close(self) -> None:
        self._before_close()
        self._hang_up()
        self.let_zombies_work()
        self._end_processes(self.places())

    def _hang_up(self, lost: Collection[Place] = ()) -> None:
        """End all slots. Those of processes that are lost do not notice."""
        self._end_processes(lost)
        for place, slot in getattr(self, "_live", {}).items():
            slot.inbox.is_closed = True
            if place not in lost:
                slot.finish()

    def let_zombies_work(self) -> None:
        """Do nothing: a process that was given up reaches neither the driver nor a slot."""

    def _start_all(self) -> None:
        self._rounds = LiveRounds(frozenset(self.places()))
        self._live = {place: _RunningSlot(self, place) for place in self.places()}
        for slot in self._live.values():
            slot.start()

    def _suffer(self, plan: EpochPlan, faults: Faults) -> EpochRows:
        """Let the slots work for a while, then lose all of them. Return their void answers."""
        void = EpochRows()
        early = all(fault is Fault.LOSE_HOST for fault in faults.values())
        if not early:
            late = any(fault in (Fault.RETRY, Fault.LOSE_HOST_LATE) for fault in faults.values())
            void = self._run_round(plan, _MOST_STEPS if late else self._random.randint(1, 200))
        self._hang_up([place for place, fault in faults.items() if fault in _LOSSES])
        self._start_all()
        return void

    def _run_round(self, plan: EpochPlan, steps: int) -> EpochRows:
        running = self._running = self._rounds.begin(plan)
        for place, control in running.controls:
            self._live[place].inbox.messages.append(control)
        places = self.places()
        end_after = 0 if plan.ends_at_once else self._random.randint(0, 20 * len(places))
        idle: set[Place] = set()
        for step in range(steps):
            if running.is_over:
                return running.rows
            place = self._random.choice(places)
            if self._live[place].work():
                idle.clear()
            else:
                idle.add(place)
            all_idle = len(idle) == len(places)
            if all_idle and not running.is_ended and not running.end_is_wanted:
                self._pass_time(plan)
            is_due = step >= end_after or running.end_is_wanted or all_idle
            if is_due and not running.is_ended and not plan.closing:
                running.is_ended = True
                idle.clear()
                for slot in self._live.values():
                    slot.inbox.messages.append(EndEpoch(plan.epoch))
        if steps == _MOST_STEPS:
            raise JobExecutionError(
                f"epoch {plan.epoch} does not end: {running.awaited} are silent"
            )
        return running.rows

    def _pass_time(self, plan: EpochPlan) -> None:
        """Advance the clock until the first slot wakes up, or until the next epoch is due."""
        waits = [slot.inbox.wait for slot in self._live.values()]
        if plan.due_in is not None:
            waits.append(plan.due_in)
        self._let_time_pass(min(waits))

    def make_slot(self, place: Place) -> LiveSlot:
        unpack = self._packed.unpack
        return LiveSlot(
            unpack(),
            *place,
            lambda row: self.to_driver(place, row),
            unpack,
            store=self._store,
            now_millis=self._now_millis,
            spawn=self._new_process(place).spawn,
        )

    def to_driver(self, place: Place, row: BufferRow) -> None:
        if self._live[place].inbox.is_closed:
            raise InboxClosedError
        if row.kind == CREDITS:
            for sender, some in decode(row.payload).items():
                self._live[sender].inbox.messages.append(Credits(tuple(some)))
        else:
            self._running.take(place, row)

    def deliver(self, source: Place, rows: Rows) -> None:
        """Bring rows to the slots of the next level, through Arrow."""
        level = source[0] + 1
        slots = self._levels[level]
        for row in self._through_arrow(rows):
            self._live[level, row.target % slots].inbox.channels.setdefault(source, deque()).append(
                row
            )

    def choose(self, places: list[Place]) -> Place:
        return self._random.choice(places)

    def flip(self) -> bool:
        return self._random.random() < 0.5

    _running: LiveRound


class _RunningSlot:
    def __init__(self, slots: HarnessLiveSlots, place: Place) -> None:
        self._slots = slots
        self._place = place
        self.inbox = _HarnessInbox(slots)
        self._work: Iterator[Rows] = iter(())

    def start(self) -> None:
        self._work = self._slots.make_slot(self._place).run(self.inbox)

    def finish(self) -> None:
        for _ in self._work:
            pass

    def work(self) -> bool:
        """Let the slot work until it sends something or has nothing to do; False for nothing."""
        had_input = self.inbox.has_items
        rows = next(self._work)
        if rows:
            self._slots.deliver(self._place, rows)
        return bool(rows) or had_input


class _HarnessInbox:
    def __init__(self, slots: HarnessLiveSlots) -> None:
        self._slots = slots
        self.messages: deque[Message] = deque()
        self.channels: dict[Place, deque[BufferRow]] = {}
        self.is_closed = False
        #: The seconds that the slot wanted to wait when it found nothing.
        self.wait = 0.0

    @property
    def has_items(self) -> bool:
        return bool(self.messages) or any(self.channels.values())

    def wake(self) -> None:
        """Do nothing: the slot never waits."""

    @property
    def has_message(self) -> bool:
        # Random: the slot may look at any time.
        return self.is_closed or (bool(self.messages) and self._slots.flip())

    def take_message(self, seconds: float = 0.0) -> Message | None:
        if self.is_closed:
            raise InboxClosedError
        if seconds:
            self.wait = seconds
        return self.messages.popleft() if self.messages and self._slots.flip() else None

    def take(self, seconds: float) -> Rows | Message | None:
        if self.is_closed:
            raise InboxClosedError
        self.wait = seconds
        if self.messages and self._slots.flip():
            return self.messages.popleft()
        ready = [place for place, rows in self.channels.items() if rows]
        if ready:
            return [self.channels[self._slots.choose(ready)].popleft()]
        return self.messages.popleft() if self.messages else None
