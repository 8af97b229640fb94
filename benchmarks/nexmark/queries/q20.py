"""Query 20, expand bids with auctions: the bids for auctions of one category."""

from benchmarks.nexmark.events import auctions, bids
from firesteel.datastream import DataStream


def query(events: DataStream) -> DataStream:
    offered = auctions(events).filter(lambda auction: auction["category"] == 10)
    return (
        bids(events)
        .map(
            lambda bid: (
                bid["auction"],
                bid["bidder"],
                bid["price"],
                bid["channel"],
                bid["dateTime"],
            )
        )
        .join_on(
            offered.map(
                lambda auction: (
                    auction["id"],
                    auction["itemName"],
                    auction["seller"],
                    auction["expires"],
                )
            ),
            "inner",
        )
        .where(lambda bid: bid[0])
        .equal_to(lambda auction: auction[0])
        .apply(lambda bid, auction: (*bid, *auction[1:]))
    )
