"""Query 0, pass through: the cost of reading and writing."""

from benchmarks.nexmark.events import bids
from firesteel.datastream import DataStream


def query(events: DataStream) -> DataStream:
    return bids(events).map(
        lambda bid: (bid["auction"], bid["bidder"], bid["price"], bid["dateTime"], bid["extra"])
    )
