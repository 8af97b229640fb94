"""Query 8, monitor new users: who registered and opened an auction within the same 10 seconds."""

from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.nexmark.events import auctions, in_event_time, persons
from firesteel.common import Time
from firesteel.datastream import CoGroupFunction, DataStream
from firesteel.datastream.window import TumblingEventTimeWindows

_WINDOW_MILLIS = 10_000


class NewSeller(CoGroupFunction):
    def co_group(
        self, first: Iterable[Any], second: Iterable[Any]
    ) -> Iterator[tuple[int, str, int]]:
        if any(True for _ in second):
            for person in first:
                start = person["dateTime"] // _WINDOW_MILLIS * _WINDOW_MILLIS
                yield person["id"], person["name"], start


def query(events: DataStream) -> DataStream:
    return (
        in_event_time(persons(events))
        .co_group(in_event_time(auctions(events)))
        .where(lambda person: person["id"])
        .equal_to(lambda auction: auction["seller"])
        .window(TumblingEventTimeWindows.of(Time.milliseconds(_WINDOW_MILLIS)))
        .apply(NewSeller())
    )
