"""Filter and map by rows and by columns, without Spark: a Parquet file through a job in the harness."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.cases import BY_NAME
from benchmarks.measure import Arguments, Figures, report
from benchmarks.sections.formats import Nothing, cpu_seconds
from benchmarks.sections.section import Section
from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment, col
from firesteel.datastream.connectors.file_system import FileSource
from firesteel.datastream.formats.parquet import ParquetColumnarRowInputFormat
from firesteel.testing import JobHarness

_RECORDS = 400_000
_TURNS = 3
_BID = Types.ROW_NAMED(["id", "user", "dollars"], [Types.LONG(), Types.STRING(), Types.DOUBLE()])
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


def measure(arguments: Arguments) -> None:
    count = arguments.records_of(BY_NAME["reduce_1m"], _RECORDS)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "bids.parquet"
        pq.write_table(bids(count), path)
        for name, way in (("expressions", by_expressions), ("functions of batches", by_batches)):
            rows, columns = [], []
            # In turns, so that other work on the machine disturbs both alike.
            for _ in range(_TURNS):
                rows.append(cpu_seconds(partial(run_job, path, by_functions)))
                columns.append(cpu_seconds(partial(run_job, path, way)))
            report(
                section="columns",
                name=name,
                records=count,
                columns=count / min(columns),
                rows=count / min(rows),
                ratio=min(rows) / min(columns),
            )


def row(figures: Figures) -> list[str]:
    return [
        str(figures["name"]),
        f"{figures['columns']:,.0f}",
        f"{figures['rows']:,.0f}",
        f"{figures['ratio']:.1f}",
    ]


SECTION = Section(
    "columns",
    ("filter and map, records per CPU second", "columns", "rows", "ratio (goal 5)"),
    row,
    measure,
)
