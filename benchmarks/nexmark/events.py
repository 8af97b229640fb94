"""Streams of Nexmark events, read from JSON lines."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.nexmark.generator import AUCTION, BID, PERSON
from firesteel.common import Duration, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat

# The longest time that an event may be late, as in the published queries.
_DELAY = Duration.of_seconds(4)


def read_events(env: StreamExecutionEnvironment, directory: str) -> DataStream:
    """Read the files that ``generator`` has written, without timestamps."""
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), directory)
    lines = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "events")
    return lines.map(json.loads)


def persons(events: DataStream) -> DataStream:
    return _of_kind(events, PERSON, "person")


def auctions(events: DataStream) -> DataStream:
    return _of_kind(events, AUCTION, "auction")


def bids(events: DataStream) -> DataStream:
    return _of_kind(events, BID, "bid")


def _of_kind(events: DataStream, kind: int, field: str) -> DataStream:
    chosen = events.filter(lambda event: event["event_type"] == kind)
    return chosen.map(lambda event: event[field])


class EventTime(TimestampAssigner):
    """The time of a person, an auction or a bid."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return value["dateTime"]  # type: ignore[no-any-return]


def in_event_time(stream: DataStream) -> DataStream:
    """Give persons, auctions or bids their timestamps."""
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(_DELAY)
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(EventTime()))
