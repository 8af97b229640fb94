"""Query 15, bidding statistics: bids, bidders and auctions of each day, by rank of the price."""

from typing import Any

from benchmarks.nexmark.bid_statistics import DAY_MILLIS, Statistics
from benchmarks.nexmark.events import bids
from firesteel.datastream import DataStream


def query(events: DataStream) -> DataStream:
    statistics = (
        bids(events).key_by(lambda bid: bid["dateTime"] // DAY_MILLIS).process(Statistics())
    )
    return statistics.map(lambda result: (result[0], *result[2:]))


def key(result: tuple[Any, ...]) -> Any:
    """A later result replaces an earlier one of the same day."""
    return result[0]
