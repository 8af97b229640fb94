"""Rows and columns: a Parquet file through jobs in the harness, and lines of JSON on Spark."""

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.cases import BY_NAME, Case
from benchmarks.measure import Arguments, Figures, report, steady_rate
from benchmarks.peers.firesteel_jobs import Firesteel
from benchmarks.sections.formats import Nothing, cpu_seconds
from benchmarks.sections.section import Section
from firesteel.common import Row, Time, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment, col, lit
from firesteel.datastream.connectors.file_system import FileSource
from firesteel.datastream.formats.json import JsonReaderFormat
from firesteel.datastream.formats.parquet import ParquetColumnarRowInputFormat
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import JobHarness

_RECORDS = 400_000
_TURNS = 3
_KEYS = (1_000, 1_000_000)
# Ten windows of as many records each.
_WINDOWS = 10
_EVENTS = 8_000_000
_EVENT_KEYS = 1_000
_BID = Types.ROW_NAMED(["id", "user", "dollars"], [Types.LONG(), Types.STRING(), Types.DOUBLE()])
_AMOUNT = Types.ROW_NAMED(["user", "dollars", "time"], [Types.LONG(), Types.DOUBLE(), Types.LONG()])
_EVENT = Types.ROW_NAMED(["user", "time"], [Types.STRING(), Types.LONG()])
_PRICE = Types.ROW_NAMED(["user", "euros"], [Types.STRING(), Types.DOUBLE()])


def bids(count: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "user": [f"user-{number % 1000}" for number in range(count)],
            "dollars": [number * 0.25 for number in range(count)],
        }
    )


def in_euros(batch: pa.RecordBatch) -> pa.RecordBatch:
    euros = pc.multiply(batch.column("dollars"), 0.908)
    return pa.record_batch({"user": batch.column("user"), "euros": euros})


def by_functions(stream: Any) -> Any:
    kept = stream.filter(lambda bid: bid.dollars > 5)
    prices = kept.map(lambda bid: Row(user=bid.user, euros=bid.dollars * 0.908), _PRICE)
    return prices.filter(lambda price: price.euros < 0)


def by_expressions(stream: Any) -> Any:
    euros = (col("dollars") * 0.908).alias("euros")
    return stream.filter(col("dollars") > 5).select(col("user"), euros).filter(col("euros") < 0)


def by_batches(stream: Any) -> Any:
    kept = stream.filter_batches(lambda batch: pc.greater(batch.column("dollars"), 5))
    prices = kept.map_batches(in_euros, _PRICE)
    return prices.filter_batches(lambda batch: pc.less(batch.column("euros"), 0))


def run_job(path: Path, way: Callable[[Any], Any]) -> None:
    def program(env: StreamExecutionEnvironment) -> None:
        file_format = ParquetColumnarRowInputFormat(_BID)
        source = FileSource.for_bulk_file_format(file_format, str(path)).build()
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "bids")
        # The last filter of each way keeps nothing: the sink takes rows, and is not measured.
        way(stream).sink_to(Nothing())

    JobHarness(program, records_per_epoch=1_000_000).run()


def amounts(count: int, keys: int) -> pa.Table:
    chosen = np.random.default_rng(7)
    return pa.table(
        {
            "user": chosen.integers(0, keys, count),
            "dollars": chosen.random(count),
            "time": np.arange(count) * _WINDOWS // 1000,
        }
    )


def window_by_functions(stream: Any, window: Time) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda amount, _: amount.time
    )
    stamped = stream.assign_timestamps_and_watermarks(strategy)
    windows = stamped.key_by(lambda amount: amount.user).window(TumblingEventTimeWindows.of(window))
    return windows.sum("dollars").filter(lambda amount: amount.dollars < 0)


def window_by_columns(stream: Any, window: Time) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(col("time"))
    stamped = stream.assign_timestamps_and_watermarks(strategy)
    windows = stamped.key_by(col("user")).window(TumblingEventTimeWindows.of(window))
    return windows.sum("dollars").filter(col("dollars") < 0)


def run_windows(path: Path, way: Callable[[Any, Time], Any], count: int) -> None:
    def program(env: StreamExecutionEnvironment) -> None:
        file_format = ParquetColumnarRowInputFormat(_AMOUNT)
        source = FileSource.for_bulk_file_format(file_format, str(path)).build()
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "amounts")
        way(stream, Time.milliseconds(count // 1000)).sink_to(Nothing())

    JobHarness(program, records_per_epoch=1_000_000).run()


def write_events(path: Path, count: int) -> None:
    chosen = np.random.default_rng(7).integers(0, _EVENT_KEYS, count)
    with path.open("w") as file:
        for begin in range(0, count, 100_000):
            users = chosen[begin : begin + 100_000].tolist()
            file.writelines(
                f'{{"user":"user-{user}","time":{begin + number}}}\n'
                for number, user in enumerate(users)
            )


def count_events(env: StreamExecutionEnvironment, path: Path, window: Time) -> None:
    file_format = JsonReaderFormat.for_type_info(_EVENT)
    source = FileSource.for_record_stream_format(file_format, str(path)).build()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(col("time"))
    stream = env.from_source(source, strategy, "events")
    ones = stream.select(col("user"), lit(1).alias("count"))
    windows = ones.key_by(col("user")).window(TumblingEventTimeWindows.of(window))
    windows.sum("count").sink_to(Nothing())


def compare(name: str, count: int, by_rows: Callable[[], None], by_columns: Any) -> None:
    rows, columns = [], []
    # In turns, so that other work on the machine disturbs both alike.
    for _ in range(_TURNS):
        rows.append(cpu_seconds(by_rows))
        columns.append(cpu_seconds(by_columns))
    report(
        section="columns",
        name=name,
        records=count,
        columns=count / min(columns),
        rows=count / min(rows),
        ratio=min(rows) / min(columns),
    )


def measure(arguments: Arguments) -> None:
    count = arguments.records_of(BY_NAME["reduce_1m"], _RECORDS)
    events = arguments.records_of(BY_NAME["reduce_1m"], _EVENTS)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "bids.parquet"
        pq.write_table(bids(count), path)
        for name, way in (("expressions", by_expressions), ("functions of batches", by_batches)):
            compare(
                f"filter and map, {name}",
                count,
                partial(run_job, path, by_functions),
                partial(run_job, path, way),
            )
        for keys in _KEYS:
            pq.write_table(amounts(count, keys), path)
            compare(
                f"sum in windows, {keys:,} keys",
                count,
                partial(run_windows, path, window_by_functions, count),
                partial(run_windows, path, window_by_columns, count),
            )
        measure_events(Path(directory), events, arguments)


def measure_events(directory: Path, count: int, arguments: Arguments) -> None:
    paths = {size: directory / f"events-{size}.json" for size in (count // 4, count)}
    for size, path in paths.items():
        write_events(path, size)
    peer = Firesteel(2)

    def run(_: Case, size: int) -> float:
        env = peer.environment()
        count_events(env, paths[size], Time.milliseconds(max(1, size // _WINDOWS)))
        begin = time.perf_counter()
        env.execute("count of events")
        return time.perf_counter() - begin

    case = Case(name="events", title="events", records=count)
    # The first job starts Spark.
    run(case, count // 4)
    measured = steady_rate(case, run, records=count, repeats=arguments.repeats)
    report(
        section="columns",
        name="count of JSON events in windows, per second on two slots of Spark",
        records=count,
        columns=measured.rate,
        rows=None,
        ratio=None,
    )


def row(figures: Figures) -> list[str]:
    rows, ratio = figures["rows"], figures["ratio"]
    return [
        str(figures["name"]),
        f"{figures['columns'] or 0:,.0f}",
        "-" if rows is None else f"{rows:,.0f}",
        "-" if ratio is None else f"{ratio:.1f}",
    ]


SECTION = Section(
    "columns",
    ("job, records per CPU second", "columns", "rows", "ratio (goal 5)"),
    row,
    measure,
)
