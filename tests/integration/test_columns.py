"""Columns on Spark: lines of JSON through an exchange into windows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from firesteel.common import Time, Types, WatermarkStrategy
from firesteel.datastream import col, lit
from firesteel.datastream.connectors.file_system import FileSource
from firesteel.datastream.formats.json import JsonReaderFormat
from firesteel.datastream.window import TumblingEventTimeWindows
from tests.integration.conftest import MakeEnvironment

EVENT = Types.ROW_NAMED(["user", "time"], [Types.STRING(), Types.LONG()])


def test_events_are_counted_in_windows(make_env: MakeEnvironment, tmp_path: Path) -> None:
    events = [(f"user-{number * 7 % 23}", number) for number in range(30_000)]
    for part in range(2):
        lines = [json.dumps({"user": user, "time": time}) for user, time in events[part::2]]
        (tmp_path / f"{part}.json").write_text("\n".join(lines))
    env = make_env()
    source = FileSource.for_record_stream_format(
        JsonReaderFormat.for_type_info(EVENT), str(tmp_path)
    ).build()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(col("time"))
    stream = env.from_source(source, strategy, "events")
    ones = stream.select(col("user"), (col("time") // 1000).alias("second"), lit(1).alias("count"))
    windows = ones.key_by(col("user")).window(TumblingEventTimeWindows.of(Time.seconds(1)))
    counts = windows.sum("count")
    assert "--HASH, columns-->" in env.explain("stream")
    found = {(row.user, row.second): row.count for row in counts.execute_and_collect()}
    assert found == Counter((user, time // 1000) for user, time in events)
