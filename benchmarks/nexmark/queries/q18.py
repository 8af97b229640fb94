"""Query 18, find last bid: the last bid of each bidder for each auction."""

from typing import Any

from benchmarks.nexmark.events import bids
from firesteel.datastream import DataStream


def query(events: DataStream) -> DataStream:
    # Of two bids of the same time the one that arrives later wins.
    return (
        bids(events)
        .map(lambda bid: (bid["bidder"], bid["auction"], bid["dateTime"], bid["price"]))
        .key_by(lambda bid: bid[:2])
        .reduce(lambda last, bid: bid if bid[2:] >= last[2:] else last)
    )


def key(result: tuple[Any, ...]) -> Any:
    """A later result replaces an earlier one of the same bidder and auction."""
    return result[:2]
