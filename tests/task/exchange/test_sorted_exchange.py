"""The exchange into keyed operators of batch jobs."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.constants import MAX_WATERMARK
from firesteel.errors import ChannelSequenceError
from firesteel.graph.partitioning import Partitioning, ShipStrategy
from firesteel.graph.stream_graph import StreamEdge
from firesteel.protocol.row_order import RowOrder
from firesteel.protocol.rows import KEYED, BufferRow
from firesteel.task.exchange.sorted_exchange import SortingGate, SortingWriter
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.unpicklable import UnpicklableRecordError
from tests.task.conftest import make_node

_LEFT, _RIGHT = 4, 5
_ORDER = RowOrder(broadcast=frozenset(), keyed=frozenset({_LEFT, _RIGHT}))


class Exchange:
    """Two writers of the left edge and one of the right edge, and the gate of their one target."""

    def __init__(self) -> None:
        self.rows: list[BufferRow] = []
        self.events: list[Any] = []
        channels = [(_LEFT, 0), (_LEFT, 1), (_RIGHT, 0)]
        self.writers = [self._writer(edge, subtask) for edge, subtask in channels]
        self.gate = SortingGate(
            "test",
            lambda watermark: self.events.append(("watermark", watermark)),
            lambda _: None,
            on_key_end=lambda: self.events.append("end"),
        )
        for edge, subtask in channels:
            self.gate.add_channel(edge, subtask, self._taker(edge))
        self.gate.begin_epoch()
        for writer in self.writers:
            writer.begin_epoch(1)

    def _writer(self, edge: int, subtask: int) -> SortingWriter:
        by_key = Partitioning(ShipStrategy.HASH, key_selector=lambda record: record[0])
        source, target = make_node(1, 2), make_node(2, 1)
        return SortingWriter(
            StreamEdge(edge, 1, 2, by_key), source, target, subtask, 0, self.rows.append
        )

    def _taker(self, edge: int) -> Any:
        def take(batch: RecordBatch) -> None:
            assert batch.keys == [record[0] for record in batch.values]
            stamps: list[Any] = batch.timestamps or [None] * len(batch.values)
            self.events += [(edge, *pair) for pair in zip(batch.values, stamps, strict=True)]

        return take

    def finish(self) -> list[Any]:
        for writer in self.writers:
            writer.end_epoch(finished=True)
        Random(1).shuffle(self.rows)
        for row in sorted(self.rows, key=_ORDER.place):
            self.gate.accept(row)
        self.gate.check_complete()
        return self.events


def test_keys_come_one_after_the_other_and_records_in_the_order_of_timestamps() -> None:
    exchange = Exchange()
    left, other, right = exchange.writers
    left.emit(RecordBatch([("b", 1), ("a", 2), ("b", 3)], [30, 20, 10]))
    right.emit(RecordBatch([("b", 4), ("c", 5)], [20, -1]))
    other.emit(RecordBatch([("b", 6), ("b", 7)], [30, 10]))
    assert exchange.finish() == [
        (_LEFT, ("a", 2), 20),
        "end",
        (_LEFT, ("b", 3), 10),
        (_LEFT, ("b", 7), 10),
        (_RIGHT, ("b", 4), 20),
        (_LEFT, ("b", 1), 30),
        (_LEFT, ("b", 6), 30),
        "end",
        (_RIGHT, ("c", 5), -1),
        "end",
        ("watermark", MAX_WATERMARK),
    ]


def test_records_without_timestamps_come_first_in_the_order_of_their_channel() -> None:
    exchange = Exchange()
    writer = exchange.writers[0]
    writer.emit(RecordBatch([("a", 1)], [-5]))
    writer.emit(RecordBatch([("a", 2), ("a", 3)]))
    writer.flush()
    writer.emit(RecordBatch([("a", 4)]))
    values = [event[1:] for event in exchange.finish() if event[0] == _LEFT]
    assert values == [(("a", 2), None), (("a", 3), None), (("a", 4), None), (("a", 1), -5)]


_records = st.lists(
    st.tuples(
        st.sampled_from([0, 1, -1, 2**80, "", "a", "a\0b", None, (1, "x"), (1,), b"\0", 2.5]),
        st.integers(-(2**62), 2**62),
    ),
    max_size=40,
)


@pytest.mark.parametrize("disorder", [0, 3, 1_000_000])
@pytest.mark.parametrize("restarts", [0, 3])
def test_long_keys_are_merged_in_order_whatever_the_order_of_their_timestamps(
    disorder: int, restarts: int
) -> None:
    random = Random(disorder + restarts)
    exchange = Exchange()
    sent: list[tuple[int, int]] = []
    for _ in range(restarts + 1):
        for start in range(0, 5_000, 500):
            for writer in exchange.writers:
                stamps = [start + n + random.randint(0, disorder) for n in range(500)]
                records = [(n % 2, len(sent) + n) for n in range(500)]
                sent += records
                writer.emit(RecordBatch(records, stamps))
                if random.random() < 0.5:
                    writer.flush()
    events = exchange.finish()[:-1]
    arrived = [event[1] for event in events if event != "end"]
    assert sorted(arrived) == sorted(sent)
    middle = events.index("end")
    for of_key in (events[:middle], events[middle + 1 : -1]):
        stamps = [stamp for _, _, stamp in of_key]
        assert stamps == sorted(stamps)


def test_records_in_order_need_one_row_per_key_and_buffer() -> None:
    exchange = Exchange()
    writer = exchange.writers[0]
    for start in range(0, 3_000, 1_000):
        numbers = range(start, start + 1_000)
        writer.emit(RecordBatch([(n % 4, n) for n in numbers], list(numbers)))
        writer.flush()
    assert len(exchange.rows) == 12


def test_the_gate_keeps_few_records_of_a_long_key() -> None:
    most = 0
    for disorder in (0, 50, 10**6):
        exchange = Exchange()
        writer = exchange.writers[0]
        random = Random(1)
        for start in range(0, 100_000, 1_000):
            stamps = [start + n + random.randint(0, disorder) for n in range(1_000)]
            writer.emit(RecordBatch([("a", n) for n in range(1_000)], stamps))
            writer.flush()
        taken = 0
        for row in sorted(exchange.rows, key=_ORDER.place):
            exchange.gate.accept(row)
            taken = exchange.gate.records_in - len(exchange.events)
            most = max(most, taken)
    assert most < 20_000


@given(_records, _records)
def test_any_records_arrive_once_grouped_and_in_order(
    left: list[tuple[Any, int]], right: list[tuple[Any, int]]
) -> None:
    exchange = Exchange()
    for writer, records in ((exchange.writers[0], left), (exchange.writers[2], right)):
        if records:
            writer.emit(RecordBatch(records, [stamp for _, stamp in records]))
    keys: list[Any] = []
    arrived: list[tuple[Any, int]] = []
    last = None
    for event in exchange.finish()[:-1]:
        if event == "end":
            keys.append(arrived[-1][0])
            last = None
            continue
        _, record, stamp = event
        assert last is None or (record[0] == last[0] and stamp >= last[1])
        last = record
        arrived.append(record)
    assert len(keys) == len(set(keys)) == len({key for key, _ in left + right})
    assert sorted(arrived, key=repr) == sorted(left + right, key=repr)


def test_the_last_watermark_comes_after_all_records() -> None:
    exchange = Exchange()
    for number, writer in enumerate(exchange.writers):
        writer.emit(RecordBatch([("a", number)], [0]))
        writer.watermark(50)
        writer.idle(True)
        writer.emit(RecordBatch([("a", number)], [0]))
        writer.watermark(20)
    assert exchange.finish()[-3:] == ["end", ("watermark", 50), ("watermark", MAX_WATERMARK)]


def test_a_lost_row_is_noticed() -> None:
    exchange = Exchange()
    exchange.writers[0].emit(RecordBatch([("a", 1), ("b", 2)]))
    exchange.writers[0].flush()
    lost = next(row for row in exchange.rows if row.kind == KEYED)
    exchange.rows.remove(lost)
    with pytest.raises(ChannelSequenceError):
        exchange.finish()


def test_an_abandoned_attempt_leaves_nothing() -> None:
    exchange = Exchange()
    exchange.writers[0].emit(RecordBatch([("a", 1)]))
    exchange.writers[0].flush()
    exchange.gate.accept(exchange.rows.pop())
    exchange.gate.begin_epoch()
    for writer in exchange.writers:
        writer.begin_epoch(1)
    assert exchange.finish() == [("watermark", MAX_WATERMARK)]


def test_a_record_that_cannot_be_pickled_is_named() -> None:
    writer = Exchange().writers[0]
    writer.emit(RecordBatch([("a", threading.Lock())]))
    with pytest.raises(UnpicklableRecordError, match="node 1"):
        writer.flush()
