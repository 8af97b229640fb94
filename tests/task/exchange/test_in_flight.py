"""Rows in flight: what a checkpoint keeps of them, and who processes them after it is restored."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.common.columns import ColumnLayout
from firesteel.common.expressions import col
from firesteel.common.key_expressions import KeyExpressions
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.graph.partitioning import ShipStrategy
from firesteel.protocol.messages import InFlight
from firesteel.protocol.rows import (
    COUNTED,
    DATA,
    END_OF_INPUT,
    IDLENESS,
    WATERMARK,
    BufferRow,
)
from firesteel.state.changelog import Segment, SegmentStore
from firesteel.state.key_groups import KeyRouter
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.exchange.buffers import BufferEncoder, decode_buffer
from firesteel.task.exchange.in_flight import InFlightRows, InFlightRowsError, may_overtake
from firesteel.task.exchange.keys import key_selection
from firesteel.testing import JobHarness
from firesteel.usercode import pickling

STORE = SegmentStore(None, 1 << 20)


def graph_of(parallelism: int, exchange: str = "key_by") -> Any:
    def program(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_sequence(1, 10)
        if exchange == "key_by":
            numbers.key_by(str).map(lambda n: n).print()
        else:
            getattr(numbers, exchange)().map(lambda n: n).print()

    return JobHarness(program, parallelism=parallelism)._program.levels.job_graph


def in_flight(parallelism: int, subtask: int = 0, exchange: str = "key_by") -> InFlightRows:
    graph = graph_of(parallelism, exchange)
    edge = graph.edges[0]
    rows = InFlightRows("map", subtask, parallelism)
    rows.add_edge(edge, graph.nodes[edge.source], graph.nodes[edge.target], None)
    return rows


def edge_of(rows: InFlightRows) -> int:
    return rows._inputs[0].edge.id


def data(edge: int, channel: int, *records: int) -> BufferRow:
    keys = [str(record) for record in records]
    payload = pickling.dumps((list(records), keys, None))
    return BufferRow(0, edge, channel, COUNTED, DATA, payload)


def values(rows: list[BufferRow]) -> list[int]:
    return [value for row in rows for value in decode_buffer(row.payload).values]


def written(rows: InFlightRows, *waiting: BufferRow) -> tuple[Segment, ...]:
    return rows.written(waiting, STORE, epoch=3)


def test_rows_come_back_in_their_order_on_their_channels() -> None:
    rows = in_flight(2)
    edge = edge_of(rows)
    watermark = BufferRow(0, edge, 1, COUNTED, WATERMARK, pickling.dumps(7))
    waiting = [data(edge, 1, 5, 6), watermark, data(edge, 0, 1)]
    segments = written(rows, *waiting)
    assert rows.restored(InFlight((segments,)), STORE) == waiting


def test_idleness_and_ends_are_sent_again_by_the_upstream_subtask() -> None:
    rows = in_flight(2)
    idle = BufferRow(0, edge_of(rows), 1, COUNTED, IDLENESS, b"\x01")
    end = BufferRow(0, edge_of(rows), 1, COUNTED, END_OF_INPUT, b"")
    assert written(rows, idle, end) == ()


def test_many_rows_are_several_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firesteel.task.exchange.in_flight._SEGMENT_BYTES", 100)
    rows = in_flight(1)
    waiting = [data(edge_of(rows), 0, n) for n in range(20)]
    segments = written(rows, *waiting)
    assert len(segments) > 1
    assert values(rows.restored(InFlight((segments,)), STORE)) == [*range(20)]


@pytest.mark.parametrize("now", [1, 3, 4])
@pytest.mark.parametrize("exchange", ["key_by", "rebalance", "shuffle", "global_"])
def test_after_rescaling_each_record_has_one_subtask(exchange: str, now: int) -> None:
    earlier = [in_flight(2, subtask, exchange) for subtask in range(2)]
    edge = edge_of(earlier[0])
    watermark = BufferRow(0, edge, 0, COUNTED, WATERMARK, pickling.dumps(7))
    segments = tuple(
        written(one, data(edge, 1, *range(10 * index, 10 * index + 10)), watermark)
        for index, one in enumerate(earlier)
    )
    later = [in_flight(now, subtask, exchange) for subtask in range(now)]
    found = [one.restored(InFlight(segments, is_rescaled=True), STORE) for one in later]
    assert Counter(value for rows in found for value in values(rows)) == Counter(range(20))
    # The watermark of a channel says nothing about the records of the channels that replace it.
    assert {row.kind for rows in found for row in rows} == {DATA}
    assert all(row.channel < now for rows in found for row in rows)


def test_a_new_subtask_gets_the_records_of_its_keys() -> None:
    earlier = in_flight(1)
    segments = written(earlier, data(edge_of(earlier), 0, *range(50)))
    for subtask in range(3):
        rows = in_flight(3, subtask)
        target = rows._target
        assert target is not None
        router = KeyRouter(3, target.max_parallelism)
        found = values(rows.restored(InFlight((segments,), is_rescaled=True), STORE))
        own = [n for n in range(50) if router.targets([str(n)]) == [subtask]]
        assert found == own


def test_fewer_senders_use_the_channels_that_exist() -> None:
    earlier = in_flight(4)
    edge = edge_of(earlier)
    watermark = BufferRow(0, edge, 3, COUNTED, WATERMARK, pickling.dumps(7))
    segments = written(earlier, data(edge, 3, 1), watermark)
    found = in_flight(2).restored(InFlight((segments,)), STORE)
    assert [(row.channel, row.kind) for row in found] == [(1, DATA)]


def test_a_program_with_other_inputs_is_refused() -> None:
    earlier = in_flight(1)
    segments = written(earlier, data(edge_of(earlier), 0, 1))
    with pytest.raises(InFlightRowsError, match="had 1 inputs and now has 0"):
        InFlightRows("map", 0, 1).restored(InFlight((segments,)), STORE)


def test_barriers_overtake_where_records_can_be_divided_again() -> None:
    strategies = {
        exchange: graph_of(2, exchange).edges[0].partitioning.strategy
        for exchange in ("key_by", "rebalance", "shuffle", "global_", "broadcast", "rescale")
    }
    overtaken = {
        exchange for exchange in strategies if may_overtake(graph_of(2, exchange).edges[0])
    }
    assert overtaken == {"key_by", "rebalance", "shuffle", "global_"}
    assert strategies["broadcast"] is ShipStrategy.BROADCAST


def test_an_operator_that_is_chained_now_gets_its_records_without_an_exchange() -> None:
    earlier = [in_flight(2, subtask, "rebalance") for subtask in range(2)]
    edge = edge_of(earlier[0])
    segments = tuple(written(one, data(edge, 0, index)) for index, one in enumerate(earlier))
    rows = InFlightRows("map", 0, 1)
    batches = rows.restored_in_chain(InFlight(segments, is_rescaled=True), STORE)
    assert [batch.values for batch in batches] == [[0], [1]]


@pytest.mark.parametrize("key", [col("value"), col("value") % 3 == 0])
def test_a_new_subtask_gets_the_columns_of_its_keys(key: Any) -> None:
    def program(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_sequence(1, 10).map(lambda n: n, Types.LONG())
        numbers.key_by(key).map(lambda n: n).print()

    def rows_of(parallelism: int, subtask: int) -> InFlightRows:
        graph = JobHarness(program, parallelism=parallelism)._program.levels.job_graph
        edge = next(one for one in graph.edges if one.partitioning.strategy is ShipStrategy.HASH)
        rows = InFlightRows("map", subtask, parallelism)
        selection = key_selection(edge, "key_by")
        rows.add_edge(edge, graph.nodes[edge.source], graph.nodes[edge.target], selection)
        return rows

    layout = ColumnLayout(Types.LONG())
    numbers = list(range(-20, 20))
    columns = ColumnBatch(layout.columns_of(numbers), layout, numbers)
    payload, _ = BufferEncoder().encode(columns)
    before = rows_of(1, 0)
    row = BufferRow(0, edge_of(before), 0, COUNTED, DATA, payload)
    segments = written(before, row)
    assert before.restored(InFlight((segments,)), STORE) == [row]
    router = KeyRouter(3, 128)
    key_of = KeyExpressions((key,), Types.LONG())
    for subtask in range(3):
        later = rows_of(3, subtask)
        found = later.restored(InFlight((segments,), is_rescaled=True), STORE)
        batches = [decode_buffer(one.payload) for one in found]
        assert all(isinstance(batch, ColumnBatch) for batch in batches)
        own = [n for n in numbers if router.targets([key_of(n)]) == [subtask]]
        assert [value for batch in batches for value in batch.values] == own
        assert [stamp for batch in batches for stamp in batch.timestamps or ()] == own
