"""Query 7, highest bid: the bids with the highest price of every 10 seconds."""

from benchmarks.nexmark.aggregates import Highest
from benchmarks.nexmark.events import bids, in_event_time
from firesteel.common import Time
from firesteel.datastream import DataStream
from firesteel.datastream.window import TumblingEventTimeWindows

# The highest bid is first looked for within so many parts of the bids, at the same time.
_PARTS = 16


def query(events: DataStream) -> DataStream:
    window = TumblingEventTimeWindows.of(Time.seconds(10))
    highest = (
        in_event_time(bids(events))
        .key_by(lambda bid: bid["auction"] % _PARTS)
        .window(window)
        .aggregate(Highest("price"))
        .flat_map(lambda best: best)
        .window_all(window)
        .aggregate(Highest("price"))
        .flat_map(lambda best: best)
    )
    return highest.map(
        lambda bid: (bid["auction"], bid["price"], bid["bidder"], bid["dateTime"], bid["extra"])
    )
