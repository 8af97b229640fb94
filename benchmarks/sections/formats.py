"""Reading JSON lines and Parquet, without Spark: a job in the harness against a plain loop."""

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.cases import BY_NAME
from benchmarks.measure import Arguments, Figures, report
from benchmarks.sections.section import Section
from firesteel.common import Row, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.base import Sink, SinkWriter
from firesteel.datastream.connectors.file_system import FileSource
from firesteel.datastream.formats.json import JsonReaderFormat
from firesteel.datastream.formats.parquet import ParquetColumnarRowInputFormat
from firesteel.testing import JobHarness

_RECORDS = 400_000
_TURNS = 3
_NAMES = ["id", "user", "amount", "paid"]
_TYPE = Types.ROW_NAMED(_NAMES, [Types.LONG(), Types.STRING(), Types.DOUBLE(), Types.BOOLEAN()])


class Nothing(Sink):
    """Drops all records."""

    def create_writer(self, context: Any, state: Any = None) -> SinkWriter:
        return NothingWriter()


class NothingWriter(SinkWriter):
    def write(self, value: Any, context: Any) -> None:
        """Drop a record."""

    def write_batch(self, values: list[Any], timestamps: Any, context: Any) -> None:
        """Drop records."""


def orders(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {
            "id": number,
            "user": f"user-{number % 1000}",
            "amount": number * 0.25,
            "paid": number % 2 == 0,
        }


def loop_over_objects(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            orjson.loads(line)


def loop_over_json_rows(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            Row(**orjson.loads(line))


def loop_over_parquet(path: Path) -> None:
    for batch in pq.ParquetFile(path).iter_batches(2048, use_threads=False):
        for record in batch.to_pylist():
            Row(**record)


def run_job(source: Any, path: Path) -> None:
    def program(env: StreamExecutionEnvironment) -> None:
        stream = env.from_source(source(str(path)), WatermarkStrategy.no_watermarks(), "orders")
        stream.sink_to(Nothing())

    JobHarness(program, records_per_epoch=1_000_000).run()


def _json(path: str) -> FileSource:
    return FileSource.for_record_stream_format(JsonReaderFormat.for_type_info(_TYPE), path).build()


def _objects(path: str) -> FileSource:
    return FileSource.for_record_stream_format(JsonReaderFormat.for_objects(), path).build()


def _parquet(path: str) -> FileSource:
    return FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(_TYPE), path).build()


def cpu_seconds(work: Callable[[], None]) -> float:
    """Return the CPU time of all threads of this process."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def measure(arguments: Arguments) -> None:
    count = arguments.records_of(BY_NAME["reduce_1m"], _RECORDS)
    with tempfile.TemporaryDirectory() as directory:
        lines = Path(directory) / "orders.json"
        lines.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in orders(count)))
        columns = Path(directory) / "orders.parquet"
        pq.write_table(pa.Table.from_pylist(list(orders(count))), columns)
        for name, path, source, loop in (
            ("JSON objects", lines, _objects, loop_over_objects),
            ("JSON rows", lines, _json, loop_over_json_rows),
            ("Parquet rows", columns, _parquet, loop_over_parquet),
        ):
            job, plain = [], []
            # In turns, so that other work on the machine disturbs both alike.
            for _ in range(_TURNS):
                plain.append(cpu_seconds(partial(loop, path)))
                job.append(cpu_seconds(partial(run_job, source, path)))
            report(
                section="formats",
                name=name,
                records=count,
                job=count / min(job),
                loop=count / min(plain),
                ratio=min(plain) / min(job),
            )


def row(figures: Figures) -> list[str]:
    return [
        str(figures["name"]),
        f"{figures['job']:,.0f}",
        f"{figures['loop']:,.0f}",
        f"{figures['ratio']:.2f}",
    ]


SECTION = Section(
    "formats",
    ("files, records per CPU second", "job", "plain loop", "ratio (goal 0.70)"),
    row,
    measure,
)
