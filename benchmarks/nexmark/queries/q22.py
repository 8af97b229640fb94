"""Query 22, get URL directories: three parts of the path of each bid's URL."""

from typing import Any

from benchmarks.nexmark.events import bids
from firesteel.datastream import DataStream


def with_directories(bid: dict[str, Any]) -> tuple[Any, ...]:
    parts = bid["url"].split("/")
    return bid["auction"], bid["bidder"], bid["price"], bid["channel"], *parts[3:6]


def query(events: DataStream) -> DataStream:
    return bids(events).map(with_directories)
