"""Query 2, selection: the bids for some auctions."""

from benchmarks.nexmark.events import bids
from firesteel.datastream import DataStream


def query(events: DataStream) -> DataStream:
    chosen = bids(events).filter(lambda bid: bid["auction"] % 123 == 0)
    return chosen.map(lambda bid: (bid["auction"], bid["price"]))
