"""Rows of an epoch in the driver, from Spark or in a harness."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import JobExecutionError
from firesteel.graph.operator_specs import CollectSpec, PrintSpec
from firesteel.graph.stream_graph import StreamGraph
from firesteel.graph.transformations import Transformation
from firesteel.master.driver_output import collectors_of, sort_output
from firesteel.protocol.execution import EpochRows
from firesteel.protocol.messages import SlotAck, SlotAddress, encode
from firesteel.protocol.rows import ACK, DATAFRAME, OUTPUT, BufferRow
from firesteel.usercode import pickling


class Collected:
    def __init__(self) -> None:
        self.records: list[Any] = []

    def add(self, records: list[Any]) -> None:
        self.records += records


def graph_with_sinks(collected: Collected) -> tuple[StreamGraph, int, int]:
    """A graph, its print sink, and its collecting sink."""
    env = StreamExecutionEnvironment()
    stream = env.from_collection([1])
    stream.print()
    collect = Transformation(
        name="collect",
        spec=CollectSpec(),
        inputs=(stream.recorded.origins,),
        driver_object=collected,
    )
    graph = env._compile("job", collect).stream_graph
    by_spec = {type(node.spec): node.id for node in graph.nodes.values()}
    return graph, by_spec[PrintSpec], by_spec[CollectSpec]


def output(node: int, content: list[Any]) -> BufferRow:
    return BufferRow(0, node, 0, 0, OUTPUT, pickling.dumps(content))


def test_lines_are_printed_and_records_reach_their_collector():
    collected = Collected()
    graph, print_node, collect_node = graph_with_sinks(collected)
    rows = [
        output(print_node, ["a"]),
        output(collect_node, [1, 2]),
        output(print_node, ["b", "c"]),
        output(collect_node, [3]),
    ]
    lines, records = sort_output(EpochRows.sort(rows).outputs, graph)
    assert lines == ["a", "b", "c"]
    for node, some in records:
        collectors_of(graph)[node].add(some)
    assert collected.records == [1, 2, 3]


def test_rows_of_spark_are_read_by_their_field_names():
    ack = SlotAck(SlotAddress("job", 0, 0, 0, 1), "host", ())
    row = SimpleNamespace(payload=encode(ack), kind=ACK, edge=0)
    assert EpochRows.sort([row]).acks == [ack]


def test_a_row_that_is_not_for_the_driver_is_an_error():
    with pytest.raises(JobExecutionError, match="kind 9"):
        EpochRows.sort([BufferRow(0, 0, 0, 0, DATAFRAME, b"")])
