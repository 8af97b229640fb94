"""Query 17, auction statistics: number and prices of the bids of each auction and day."""

from typing import Any

from benchmarks.nexmark.bid_statistics import DAY_MILLIS, rank
from benchmarks.nexmark.events import bids
from firesteel.datastream import DataStream


def of_one(bid: dict[str, Any]) -> tuple[Any, ...]:
    """Return the statistics of one bid: key, counts by rank, lowest and highest price, total."""
    price = bid["price"]
    counts = tuple(int(rank(price) == each) for each in (1, 2, 3))
    return (bid["auction"], bid["dateTime"] // DAY_MILLIS), 1, *counts, price, price, price


def combine(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return (
        one[0],
        one[1] + other[1],
        one[2] + other[2],
        one[3] + other[3],
        one[4] + other[4],
        min(one[5], other[5]),
        max(one[6], other[6]),
        one[7] + other[7],
    )


def query(events: DataStream) -> DataStream:
    statistics = bids(events).map(of_one).key_by(lambda one: one[0]).reduce(combine)
    # The average price comes before the total.
    return statistics.map(lambda one: (*one[:7], one[7] // one[1], one[7]))


def key(result: tuple[Any, ...]) -> Any:
    """A later result replaces an earlier one of the same auction and day."""
    return result[0]
