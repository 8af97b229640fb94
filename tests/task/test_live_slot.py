"""Live slots: marks between records, alignment, and the order of what leaves.

The classic picture: B and C send to D, and B's mark comes first.

B:  1 2 | 6 7        D sees   1 2 |B 6 7 3 4 5 |C
C:  3 4 5 |
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import MapFunction, RuntimeContext
from firesteel.protocol.messages import (
    UNLIMITED,
    Credit,
    Credits,
    EndEpoch,
    Message,
    ReadBudget,
    SlotAck,
    SlotAddress,
    SlotControl,
    SlotFailure,
    decode,
)
from firesteel.protocol.rows import (
    ACK,
    BARRIER,
    CREDITS,
    DATA,
    END_OF_EPOCH,
    END_WANTED,
    FAILURE,
    OPEN,
    OUTPUT,
    BufferRow,
)
from firesteel.task.exchange.buffers import decode_buffer
from firesteel.task.live_slot import InboxClosedError, LiveSlot, Rows
from firesteel.testing import JobHarness
from firesteel.usercode import pickling

B, C = 0, 1


class Inbox:
    """Items in the order of a test. The slot pauses when there are no more."""

    def __init__(self) -> None:
        self.items: deque[Any] = deque()
        self.is_closed = False

    def take(self, seconds: float) -> Rows | Message | None:
        if self.items:
            item: Rows | Message = self.items.popleft()
            return item
        if self.is_closed:
            raise InboxClosedError
        return None

    def wake(self) -> None:
        """Do nothing: the slot never waits."""

    @property
    def has_message(self) -> bool:
        return bool(self.items) and not isinstance(self.items[0], list)

    def take_message(self, seconds: float = 0.0) -> Message | None:
        return self.items.popleft() if self.has_message else None


class Picture:
    """D as a live slot. ``log`` has what it sends to the driver."""

    def __init__(
        self,
        mode: str,
        function: MapFunction | None = None,
        exchange: str = "global_",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        configuration = Configuration()
        configuration.set_string("execution.checkpointing.mode", mode)
        for key, value in (settings or {}).items():
            configuration.set_string(f"execution.checkpointing.{key}", value)

        def program(env: StreamExecutionEnvironment) -> None:
            numbers = getattr(env.from_sequence(1, 10), exchange)()
            numbers.map(function or Same()).set_parallelism(1).print().set_parallelism(1)

        harness = JobHarness(
            program, parallelism=2, configuration=configuration, checkpoint_every=0
        )
        self.program = harness._program
        self.edge = self.program.levels.job_graph.edges[0].id
        self.log: list[Any] = []
        self.told: list[dict[tuple[int, int], list[Credit]]] = []
        self.inbox = Inbox()
        self.slot = LiveSlot(self.program, 1, 0, self._to_driver, lambda: self.program)
        self._work: Iterator[Rows] = self.slot.run(self.inbox)
        self.seq = [0, 0]
        self.control(1)

    def _to_driver(self, row: BufferRow) -> None:
        if row.kind == OUTPUT:
            self.log += [int(line) for line in pickling.loads(row.payload)]
        elif row.kind in (ACK, FAILURE):
            self.log.append(decode(row.payload))
        elif row.kind == CREDITS:
            self.told.append(decode(row.payload))
        else:
            assert row.kind == END_WANTED

    def control(self, epoch: int, **more: Any) -> None:
        address = SlotAddress(self.program.job_id, 0, 1, 0, epoch)
        more = {"checkpoint_id": epoch, **more}
        self.inbox.items.append(SlotControl(address, ReadBudget(UNLIMITED, 1.0), **more))

    def send(self, source: int, *records: int) -> None:
        self._row(source, DATA, pickling.dumps((list(records), None, None)))

    def mark(self, source: int, epoch: int = 1) -> None:
        self._row(source, BARRIER, pickling.dumps(epoch))
        self._row(source, END_OF_EPOCH, OPEN)
        self.seq[source] = 0

    def _row(self, source: int, kind: int, payload: bytes) -> None:
        row = BufferRow(0, self.edge, source, self.seq[source], kind, payload)
        self.inbox.items.append([row])
        self.seq[source] += 1

    def end(self, epoch: int = 1) -> None:
        self.inbox.items.append(EndEpoch(epoch))

    def work(self) -> list[Any]:
        """Let the slot work until it has nothing to do. Return the log, acks by their epoch."""
        while self.inbox.items:
            next(self._work)
        return [f"ack {e.address.epoch}" if isinstance(e, SlotAck) else e for e in self.log]

    def close(self) -> None:
        self.inbox.is_closed = True
        assert list(self._work) == []


class Same(MapFunction):
    def map(self, value: Any) -> Any:
        return value


def the_picture(picture: Picture) -> list[Any]:
    picture.end()
    picture.send(B, 1, 2)
    picture.mark(B)
    picture.send(B, 6, 7)
    picture.send(C, 3, 4, 5)
    picture.mark(C)
    return picture.work()


def test_exactly_once_holds_back_what_follows_an_early_mark() -> None:
    assert the_picture(Picture("EXACTLY_ONCE")) == [1, 2, 3, 4, 5, "ack 1", 6, 7]


def test_at_least_once_processes_it_at_once_so_that_a_recovery_doubles_it() -> None:
    assert the_picture(Picture("AT_LEAST_ONCE")) == [1, 2, 6, 7, 3, 4, 5, "ack 1"]


@pytest.mark.parametrize("mode", ["EXACTLY_ONCE", "AT_LEAST_ONCE"])
def test_the_next_epoch_ends_like_the_first(mode: str) -> None:
    picture = Picture(mode)
    the_picture(picture)
    picture.control(2)
    picture.end(2)
    picture.send(C, 8)
    picture.mark(C, 2)
    picture.send(B, 9)
    picture.mark(B, 2)
    assert picture.work()[-3:] == [8, 9, "ack 2"]


def test_an_epoch_does_not_end_before_the_driver_says_so() -> None:
    picture = Picture("EXACTLY_ONCE")
    picture.mark(B)
    picture.mark(C)
    picture.send(B, 1)
    assert picture.work() == []
    picture.end()
    assert picture.work() == ["ack 1", 1]


def test_rows_that_arrive_before_the_first_control_wait_for_it() -> None:
    picture = Picture("EXACTLY_ONCE")
    control = picture.inbox.items.popleft()
    picture.send(B, 1, 2)
    picture.mark(B)
    picture.send(B, 6)
    picture.inbox.items.append(control)
    picture.end()
    picture.mark(C)
    assert picture.work() == [1, 2, "ack 1", 6]


class Watched(MapFunction):
    calls: list[str]

    def open(self, runtime_context: RuntimeContext) -> None:
        self.calls.append("open")

    def map(self, value: Any) -> Any:
        if value == 13:
            raise ValueError("unlucky")
        return value

    def close(self) -> None:
        self.calls.append("close")


def watched() -> Watched:
    Watched.calls = []
    return Watched()


def test_a_failure_is_reported_once_and_the_slot_waits_to_be_closed() -> None:
    picture = Picture("EXACTLY_ONCE", watched())
    picture.send(B, 1)
    picture.send(B, 13)
    picture.send(B, 2)
    picture.end()
    picture.mark(B)
    picture.mark(C)
    log = picture.work()
    assert log[0] == 1
    assert [type(one) for one in log[1:]] == [SlotFailure]
    assert "unlucky" in str(log[1].error)
    picture.control(2, close=True, checkpoint_id=None)
    assert picture.work()[2:] == ["ack 2"]


def test_functions_are_closed_when_the_driver_is_gone() -> None:
    picture = Picture("EXACTLY_ONCE")
    slot_functions = picture.slot
    picture.work()
    picture.close()
    assert not slot_functions.is_open


def test_after_a_savepoint_to_stop_with_nothing_is_read_until_the_next_control() -> None:
    def program(env: StreamExecutionEnvironment) -> None:
        env.from_sequence(1, 1000).print()

    source = JobHarness(program)._program
    log: list[BufferRow] = []
    inbox = Inbox()
    slot = LiveSlot(source, 0, 0, log.append, lambda: source)
    work = slot.run(inbox)

    def control(epoch: int, limit: int, **more: Any) -> None:
        address = SlotAddress(source.job_id, 0, 0, 0, epoch)
        inbox.items.append(SlotControl(address, ReadBudget(limit, 1.0), **more))

    def lines() -> int:
        return sum(len(pickling.loads(row.payload)) for row in log if row.kind == OUTPUT)

    splits = _splits(source)
    control(1, UNLIMITED, new_splits=splits, halt=True)
    inbox.items.append(EndEpoch(1))
    next(work)
    at_the_barrier = lines()
    assert at_the_barrier < 1000
    for _ in range(3):
        next(work)
    assert lines() == at_the_barrier
    control(2, UNLIMITED)
    for _ in range(3):
        next(work)
    assert lines() == 1000


def _splits(program: Any) -> dict[int, tuple[Any, ...]]:
    node = next(iter(program.levels.job_graph.nodes.values()))
    return {node.id: tuple(node.spec.source.create_enumerator(1).discover_splits())}


UNALIGNED = {"unaligned.enabled": "true"}


def in_flight(picture: Picture) -> list[list[int]]:
    """The records in the acks, one list per ack."""
    acks = [ack for one in picture.log if isinstance(one, SlotAck) for ack in one.subtasks]
    found = []
    for ack in acks:
        rows = [row for one in ack.in_flight for row in pickle.loads(one.inline or b"")[1]]
        found.append([value for row in rows for value in decode_buffer(row[-1]).values])
    return found


def test_a_barrier_that_overtakes_makes_the_rows_before_it_part_of_the_checkpoint() -> None:
    picture = Picture("EXACTLY_ONCE", settings=UNALIGNED)
    picture.inbox.items.clear()
    picture.control(1, overtakes=True)
    assert the_picture(picture) == ["ack 1", 1, 2, 3, 4, 5, 6, 7]
    assert in_flight(picture) == [[1, 2, 3, 4, 5]]


class Telling(MapFunction):
    """Lets the driver end the epoch while the first record is processed."""

    inbox: Inbox

    def map(self, value: Any) -> Any:
        if value == 1:
            self.inbox.items.appendleft(EndEpoch(1))
        return value


def test_a_barrier_overtakes_the_rest_of_a_row_that_is_being_processed() -> None:
    picture = Picture("EXACTLY_ONCE", Telling(), settings=UNALIGNED)
    Telling.inbox = picture.inbox
    picture.inbox.items.clear()
    picture.control(1, overtakes=True)
    picture.send(B, 1, 2, 3)
    picture.mark(B)
    picture.send(C, 4)
    picture.mark(C)
    assert picture.work() == [1, "ack 1", 2, 3, 4]
    assert in_flight(picture) == [[2, 3, 4]]


def test_the_barrier_of_a_savepoint_overtakes_nothing() -> None:
    picture = Picture("EXACTLY_ONCE", settings=UNALIGNED)
    assert the_picture(picture) == [1, 2, 3, 4, 5, "ack 1", 6, 7]
    assert in_flight(picture) == [[]]


def test_a_checkpoint_that_aligns_in_time_contains_no_rows() -> None:
    picture = Picture("EXACTLY_ONCE", settings={**UNALIGNED, "aligned-checkpoint-timeout": "1 h"})
    picture.inbox.items.clear()
    picture.control(1, overtakes=True)
    assert the_picture(picture) == [1, 2, 3, 4, 5, "ack 1", 6, 7]
    assert in_flight(picture) == [[]]


def test_an_epoch_without_a_checkpoint_does_not_wait_for_marks() -> None:
    picture = Picture("EXACTLY_ONCE", settings=UNALIGNED)
    picture.inbox.items.clear()
    picture.control(1, checkpoint_id=None)
    picture.send(B, 1)
    picture.end()
    picture.send(C, 2)
    assert picture.work() == ["ack 1", 1, 2]


def test_unaligned_has_no_effect_with_at_least_once() -> None:
    picture = Picture("AT_LEAST_ONCE", settings=UNALIGNED)
    assert not picture.program.unaligned
    assert the_picture(picture) == [1, 2, 6, 7, 3, 4, 5, "ack 1"]


def test_rows_of_a_broadcast_are_processed_before_the_snapshot() -> None:
    picture = Picture("EXACTLY_ONCE", exchange="broadcast", settings=UNALIGNED)
    picture.inbox.items.clear()
    picture.control(1, overtakes=True)
    assert the_picture(picture) == [1, 2, 3, 4, 5, "ack 1", 6, 7]
    assert in_flight(picture) == [[]]


def test_a_slot_that_is_closed_while_it_waits_for_marks_closes_its_functions() -> None:
    picture = Picture("EXACTLY_ONCE", watched(), settings=UNALIGNED)
    picture.inbox.items.clear()
    picture.control(1, overtakes=True)
    picture.end()
    picture.send(B, 1)
    picture.control(2, close=True, checkpoint_id=None)
    assert picture.work() == ["ack 2"]
    assert Watched.calls == ["open", "close"]


def test_a_slot_does_not_run_far_ahead_of_the_slots_that_have_not_ended_the_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others may have to hold the rows that it sends, in memory."""
    monkeypatch.setattr("firesteel.task.live_slot._MOST_BYTES_AHEAD", 2000)
    monkeypatch.setattr("firesteel.task.live_slot._LEAST_BYTES_AHEAD", 2000)

    def program(env: StreamExecutionEnvironment) -> None:
        env.from_sequence(1, 10**9).rebalance().map(lambda n: n).print()

    configuration = Configuration()
    configuration.set_string("taskmanager.network.memory.buffer-debloat.enabled", "false")
    source = JobHarness(
        program, parallelism=2, configuration=configuration, checkpoint_every=0
    )._program
    inbox = Inbox()
    slot = LiveSlot(source, 0, 0, lambda _: None, lambda: source)
    running = slot.run(inbox)

    def work() -> int:
        return sum(len(row.payload) for rows in islice(running, 20) for row in rows)

    def control(epoch: int, **more: Any) -> None:
        address = SlotAddress(source.job_id, 0, 0, 0, epoch)
        inbox.items.append(SlotControl(address, ReadBudget(UNLIMITED, 1.0), **more))

    control(1, new_splits=_splits(source), checkpoint_id=1)
    assert work() > 20_000
    inbox.items.append(EndEpoch(1))
    work()
    # The mark is sent, and the control of the next epoch has not come.
    assert work() == 0
    control(2)
    assert work() > 20_000


class Upstream:
    """A source slot, whose rows a test takes as the slot after it would."""

    def __init__(self, fan_out: int = 1) -> None:
        def program(env: StreamExecutionEnvironment) -> None:
            numbers = env.from_sequence(1, 10**9).flat_map(lambda n: [n] * fan_out)
            numbers.rebalance().map(lambda n: n).print()

        source = JobHarness(program, parallelism=1, checkpoint_every=0)._program
        self.edge = source.levels.job_graph.edges[0].id
        self.inbox = Inbox()
        self.slot = LiveSlot(source, 0, 0, lambda _: None, lambda: source)
        self.running = self.slot.run(self.inbox)
        self.sent = 0
        self.sizes: list[int] = []
        address = SlotAddress(source.job_id, 0, 0, 0, 1)
        budget = ReadBudget(UNLIMITED, 1.0)
        self.inbox.items.append(SlotControl(address, budget, new_splits=_splits(source)))

    def sends_until_it_waits(self, most: int = 1 << 20) -> int:
        """Return the bytes that the slot sends until it waits for credit, or has sent many."""
        self.sizes = []
        for rows in self.running:
            self.sizes += [len(row.payload) for row in rows if row.kind == DATA]
            waits = self.slot._windows.is_full and not self.inbox.items
            buffered = any(writer.has_records for writer in self.slot._writers)
            has_more = buffered or bool(self.slot._out)
            if sum(self.sizes) >= most or (waits and not rows and not has_more):
                break
        self.sent += sum(self.sizes)
        return sum(self.sizes)

    def credit(self, limit: int | None) -> None:
        """Tell the slot that all of its rows were processed."""
        self.inbox.items.append(Credits((Credit(self.edge, 0, self.sent, limit),)))


@pytest.mark.parametrize("fan_out", [1, 500])
def test_a_slot_sends_no_more_than_the_slot_after_it_has_credit_for(fan_out: int) -> None:
    upstream = Upstream(fan_out)
    # The speed of the next slot is not known yet.
    assert upstream.sends_until_it_waits() < 64_000
    for limit in (4000, 400):
        upstream.credit(limit)
        # The first chunk after a change may be too large.
        upstream.sends_until_it_waits()
        upstream.credit(limit)
        sent = upstream.sends_until_it_waits()
        record = 3 * fan_out
        assert limit <= sent <= 2 * limit + 10 * record
        # In several buffers, so that the next slot can report each.
        assert len(upstream.sizes) >= 3 or fan_out > 1
    upstream.credit(None)
    assert upstream.sends_until_it_waits() >= 1 << 20


def test_a_slot_without_credit_ends_its_epoch_nevertheless() -> None:
    upstream = Upstream()
    upstream.sends_until_it_waits()
    upstream.inbox.items.append(EndEpoch(1))
    kinds = [row.kind for rows in islice(upstream.running, 50) for row in rows]
    assert END_OF_EPOCH in kinds


def test_a_slot_without_credit_leaves_the_rows_before_it_in_the_inbox() -> None:
    def program(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_sequence(1, 10).rebalance().map(lambda n: "x" * n)
        numbers.rebalance().map(lambda n: n).print()

    middle = JobHarness(program, parallelism=1, checkpoint_every=0)._program
    before, after = (edge.id for edge in middle.levels.job_graph.edges)
    inbox = Inbox()
    slot = LiveSlot(middle, 1, 0, lambda _: None, lambda: middle)
    running = slot.run(inbox)
    address = SlotAddress(middle.job_id, 0, 1, 0, 1)
    inbox.items.append(SlotControl(address, ReadBudget(UNLIMITED, 1.0)))

    def values(times: int) -> list[Any]:
        rows = [row for rows in islice(running, times) for row in rows if row.kind == DATA]
        return [value for row in rows for value in decode_buffer(row.payload).values]

    def send(seq: int, *records: int) -> None:
        payload = pickling.dumps((list(records), None, None))
        inbox.items.append([BufferRow(0, before, 0, seq, DATA, payload)])

    send(0, 20_000)
    send(1, 5)
    seen: list[Any] = []
    while not slot._windows.is_full:
        seen += values(1)
    seen += values(50)
    assert seen == ["x" * 20_000]
    assert len(inbox.items) == 1
    inbox.items.appendleft(Credits((Credit(after, 0, 1 << 20, 100),)))
    while inbox.items:
        seen += values(1)
    while seen[-1] != "x" * 5:
        seen += values(1)


def test_a_slow_slot_tells_the_slots_before_it_how_much_it_can_take() -> None:
    picture = Picture("EXACTLY_ONCE", Slow())
    picture.send(B, *range(20))
    while not picture.told:
        picture.work()
        next(picture._work)
    [first] = picture.told[0][0, B]
    assert (first.edge, first.target) == (picture.edge, 0)
    assert first.limit is not None
    # 20 records of 5 ms and 50 bytes: it takes ten times as many in a second, of two channels.
    assert 100 < first.limit < 1000


class Slow(MapFunction):
    def map(self, value: Any) -> Any:
        time.sleep(0.005)
        return value
