"""Formats of files on Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import OutputTag
from firesteel.datastream.connectors.file_system import FileSink, FileSource
from firesteel.datastream.connectors.hybrid_source import HybridSource
from firesteel.datastream.formats.json import JsonReaderFormat
from firesteel.datastream.formats.parquet import (
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from tests.integration.conftest import MakeEnvironment

pytestmark = pytest.mark.execution("real-time", pytest.param("micro-batch", marks=pytest.mark.slow))

NUMBER = Types.ROW_NAMED(["n", "text"], [Types.LONG(), Types.STRING()])


def test_lines_become_parquet_and_parquet_comes_before_lines(
    make_env: MakeEnvironment, tmp_path: Path
) -> None:
    lines, columns = tmp_path / "in", tmp_path / "out"
    lines.mkdir()
    for part in range(3):
        numbers = range(part * 100, part * 100 + 100)
        texts = [json.dumps({"n": n, "text": f"text {n}"}) for n in numbers]
        (lines / f"{part}.json").write_text("\n".join([*texts, "{broken"]))
    reads = JsonReaderFormat.for_type_info(NUMBER)
    broken = OutputTag("broken")

    env = make_env()
    builder = FileSource.for_record_stream_format(reads, str(lines))
    source = builder.side_output_broken_records(broken).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    writers = ParquetBulkWriters.for_row_type(NUMBER)
    stream.sink_to(FileSink.for_bulk_format(str(columns), writers).build())
    rejected = stream.get_side_output(broken).execute_and_collect()
    assert [record.line for record in rejected] == [101] * 3
    files = [path for path in columns.rglob("part-*") if path.is_file()]
    written = [row["n"] for path in files for row in pq.read_table(path).to_pylist()]
    assert sorted(written) == list(range(300))

    env = make_env()
    history = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(NUMBER), str(columns))
    present = FileSource.for_record_stream_format(reads, str(lines)).skip_broken_records()
    hybrid = HybridSource.builder(history.build()).add_source(present.build()).build()
    both = env.from_source(hybrid, WatermarkStrategy.no_watermarks(), "both")
    numbers_of_both = sorted(row.n for row in both.execute_and_collect())
    assert numbers_of_both == sorted([*range(300), *range(300)])
