"""Query 9, winning bids: the best bid of each auction."""

from typing import Any

from benchmarks.nexmark.auction_bids import best_bids
from firesteel.datastream import DataStream


def query(events: DataStream) -> DataStream:
    return best_bids(events).map(
        lambda change: (
            change[0]["id"],
            change[0]["itemName"],
            change[0]["seller"],
            change[0]["category"],
            change[1]["bidder"],
            change[1]["price"],
            change[1]["dateTime"],
        )
    )


def key(result: tuple[Any, ...]) -> Any:
    """A later result replaces an earlier one of the same auction."""
    return result[0]
