"""Query 11, user sessions: the number of bids of a person in each session."""

from benchmarks.nexmark.aggregates import Count, WithWindow
from benchmarks.nexmark.events import bids, in_event_time
from firesteel.common import Time
from firesteel.datastream import DataStream
from firesteel.datastream.window import EventTimeSessionWindows


def query(events: DataStream) -> DataStream:
    return (
        in_event_time(bids(events))
        .key_by(lambda bid: bid["bidder"])
        .window(EventTimeSessionWindows.with_gap(Time.seconds(10)))
        .aggregate(Count(), WithWindow())
    )
