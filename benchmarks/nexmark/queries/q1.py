"""Query 1, currency conversion: the price of each bid in euros."""

from benchmarks.nexmark.events import bids
from firesteel.datastream import DataStream


def query(events: DataStream) -> DataStream:
    return bids(events).map(
        lambda bid: (
            bid["auction"],
            bid["bidder"],
            0.908 * bid["price"],
            bid["dateTime"],
            bid["extra"],
        )
    )
