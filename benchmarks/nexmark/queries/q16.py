"""Query 16, channel statistics: bids, bidders and auctions of each channel and day."""

from typing import Any

from benchmarks.nexmark.bid_statistics import DAY_MILLIS, Statistics
from benchmarks.nexmark.events import bids
from firesteel.datastream import DataStream


def query(events: DataStream) -> DataStream:
    by_channel = bids(events).key_by(lambda bid: (bid["channel"], bid["dateTime"] // DAY_MILLIS))
    return by_channel.process(Statistics())


def key(result: tuple[Any, ...]) -> Any:
    """A later result replaces an earlier one of the same channel and day."""
    return result[0]
