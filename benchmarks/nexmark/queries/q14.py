"""Query 14, calculation: a filter and several computed columns."""

from collections.abc import Iterator
from typing import Any

from benchmarks.nexmark.events import bids
from firesteel.datastream import DataStream

_HOUR_MILLIS = 3_600_000


def calculate(bid: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    price = 0.908 * bid["price"]
    if not 1_000_000 < price < 50_000_000:
        return
    hour = bid["dateTime"] // _HOUR_MILLIS % 24
    if 8 <= hour <= 18:
        time = "dayTime"
    elif hour <= 6 or hour >= 20:
        time = "nightTime"
    else:
        time = "otherTime"
    extra = bid["extra"]
    yield bid["auction"], bid["bidder"], price, time, bid["dateTime"], extra, extra.count("c")


def query(events: DataStream) -> DataStream:
    return bids(events).flat_map(calculate)
