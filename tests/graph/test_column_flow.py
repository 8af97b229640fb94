"""The form of records on each edge, as explain() tells it."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Row, Time, Types, WatermarkStrategy
from firesteel.datastream import (
    OutputTag,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    col,
)
from firesteel.datastream.connectors.base import Boundedness, Source
from firesteel.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from firesteel.graph.column_flow import forms_of_edges

TYPE = Types.ROW_NAMED(["user", "time"], [Types.STRING(), Types.LONG()])


class Columns(Source):
    """A source that claims to give columns. No test reads it."""

    gives_columns = True

    def __init__(self, produced: Any = TYPE) -> None:
        self._produced = produced

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> Any:
        raise NotImplementedError

    def create_reader(self, context: Any) -> Any:
        raise NotImplementedError

    def get_produced_type(self) -> Any:
        return self._produced


def stream_of(env: StreamExecutionEnvironment, source: Source | None = None) -> Any:
    return env.from_source(source or Columns(), WatermarkStrategy.no_watermarks(), "events")


def forms(build: Any) -> list[str]:
    env = StreamExecutionEnvironment().set_parallelism(1)
    build(env).print()
    graph = env._compile().stream_graph
    return [form for _, form in sorted(forms_of_edges(graph).items())]


def test_a_program_without_columns_says_nothing_about_them() -> None:
    assert forms(lambda env: env.from_collection([1]).map(abs)) == []


def test_columns_flow_from_a_source_to_the_first_operator_that_needs_rows() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(col("time"))
    assert forms(
        lambda env: (
            stream_of(env)
            .assign_timestamps_and_watermarks(strategy)
            .filter(col("time") > 0)
            .select(col("user"))
            .map(lambda row: row)
        )
    ) == [
        "columns",
        "columns",
        "columns",
        "columns, made rows: Map works on rows",
        "rows: Map works on rows",
    ]


def test_a_source_of_rows_is_the_reason_until_a_function_of_columns() -> None:
    assert forms(
        lambda env: (
            env.from_collection([Row("a", 1)], TYPE)
            .filter(col("time") > 0)
            .map_batches(lambda batch: batch)
            .filter(col("time") > 0)
        )
    ) == [
        "rows: the source gives rows",
        "rows: Filter gets rows",
        "columns",
        "columns, made rows: Sink: Print to Std. Out works on rows",
    ]


def test_a_source_of_columns_needs_a_type() -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        rows = stream_of(env, Columns(None))
        return rows.map(lambda row: row, TYPE).map_batches(lambda batch: batch)

    assert forms(build)[0] == "rows: the stream has no declared type"


def test_side_outputs_are_rows() -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        batches = stream_of(env).map_batches(lambda batch: batch)
        return batches.get_side_output(OutputTag("side", TYPE)).filter(col("time") > 0)

    assert forms(build)[1] == "rows: side outputs are rows"


@pytest.mark.parametrize(
    ("exchange", "form"),
    [
        (lambda s: s.key_by(col("user")).map(abs), "columns, made rows: Map works on rows"),
        (lambda s: s.key_by((col("user"), col("time"))).select(col("user")), "columns"),
        (lambda s: s.key_by(col("time") / 2).map(abs), "rows: a key of the type Double"),
        (lambda s: s.key_by(lambda row: 0).map(abs), "rows: the key is a function of rows"),
        (lambda s: s.rebalance().filter(col("time") > 0), "columns"),
        (
            lambda s: s.partition_custom(lambda key, n: 0, lambda row: 0).filter(col("time") > 0),
            "rows: the partitioner is a function of rows",
        ),
    ],
)
def test_exchanges_pass_columns_on(exchange: Any, form: str) -> None:
    assert forms(lambda env: exchange(stream_of(env)))[0] == form


def windows(stream: Any) -> Any:
    return stream.key_by(col("user")).window(TumblingEventTimeWindows.of(Time.seconds(5)))


_MADE_ROWS = "columns, made rows by"
_FIRST_COUNTS = "a field is neither the key nor aggregated, so the first record counts"
_OTHER_WINDOWS = "its windows have gaps, allowed lateness or an output mode"
_ONLY_ALIGNED = "only tumbling and sliding windows of event time work on columns"


def slides(stream: Any, *keys: Any) -> Any:
    assigner = SlidingEventTimeWindows.of(Time.seconds(6), Time.seconds(2))
    return stream.key_by(keys or col("user")).window(assigner)


@pytest.mark.parametrize(
    ("aggregate", "form"),
    [
        (lambda s: windows(s).sum("time"), "columns"),
        (lambda s: windows(s).output_mode("append").max(1), "columns"),
        (lambda s: s.key_by(col("user")).min("time"), "columns"),
        (lambda s: slides(s).sum("time"), "columns"),
        (
            lambda s: slides(s, col("time")).sum("time"),
            f"{_MADE_ROWS} SlidingEventTimeWindows: {_FIRST_COUNTS}",
        ),
        (
            lambda s: slides(s).allowed_lateness(1).sum("time"),
            f"{_MADE_ROWS} SlidingEventTimeWindows: {_OTHER_WINDOWS}",
        ),
        (
            lambda s: s.key_by(col("user")).min("user"),
            f"{_MADE_ROWS} Reduce: a field of the type String",
        ),
        (
            lambda s: s.key_by(col("user")).max_by("time"),
            f"{_MADE_ROWS} Reduce: max_by works on rows",
        ),
        (
            lambda s: s.key_by(col("user")).sum(-1),
            f"{_MADE_ROWS} Reduce: -1 is a field of rows",
        ),
        (
            lambda s: s.key_by(col("user")).output_mode("update").sum("time"),
            f"{_MADE_ROWS} Reduce: it works on rows",
        ),
        (
            lambda s: windows(s).output_mode("update").sum("time"),
            f"{_MADE_ROWS} TumblingEventTimeWindows: output mode update works on rows",
        ),
        (
            lambda s: windows(s).trigger(CountTrigger.of(2)).sum("time"),
            f"{_MADE_ROWS} TumblingEventTimeWindows: its windows do not fire together",
        ),
        (
            lambda s: windows(s).reduce(lambda one, other: one),
            f"{_MADE_ROWS} TumblingEventTimeWindows: only sum, min and max work on columns",
        ),
        (
            lambda s: (
                s.key_by(col("user"))
                .window(EventTimeSessionWindows.with_gap(Time.seconds(5)))
                .sum("time")
            ),
            f"{_MADE_ROWS} EventTimeSessionWindows: {_ONLY_ALIGNED}",
        ),
    ],
)
def test_some_aggregations_work_on_columns(aggregate: Any, form: str) -> None:
    found = forms(lambda env: aggregate(stream_of(env)))
    assert found[0] == form
    is_columns = form == "columns"
    assert found[1].startswith("columns, made rows: Sink" if is_columns else "rows: ")


def test_records_that_are_sent_at_once_are_rows() -> None:
    def build(env: StreamExecutionEnvironment) -> Any:
        return stream_of(env.set_buffer_timeout(0)).rebalance().filter(col("time") > 0)

    assert forms(build)[0] == "rows: buffer timeout 0 sends each record as a row"


def test_batch_jobs_sort_rows() -> None:
    env = StreamExecutionEnvironment().set_parallelism(1)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    stream_of(env).key_by(col("user")).max("time").print()
    assert "HASH, rows: batch jobs sort rows by key" in env.explain("stream")


def test_the_pictures_show_the_forms() -> None:
    env = StreamExecutionEnvironment().set_parallelism(2)
    stream_of(env).filter(col("time") > 0).key_by(lambda row: row.user).max("time").print()
    assert "--FORWARD, columns--> [2]" in env.explain("stream")
    assert "--HASH, rows: the key is a function of rows--> [3]" in env.explain()
    assert "FORWARD, columns" in env.explain("stream", "mermaid")
