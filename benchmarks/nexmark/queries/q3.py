"""Query 3, local item suggestion: who sells in a category in three states."""

from benchmarks.nexmark.events import auctions, persons
from firesteel.datastream import DataStream

STATES = ("OR", "ID", "CA")


def query(events: DataStream) -> DataStream:
    offered = auctions(events).filter(lambda auction: auction["category"] == 10)
    sellers = persons(events).filter(lambda person: person["state"] in STATES)
    pairs = (
        offered.map(lambda auction: (auction["seller"], auction["id"]))
        .join_on(
            sellers.map(
                lambda person: (person["id"], person["name"], person["city"], person["state"])
            ),
            "inner",
        )
        .where(lambda auction: auction[0])
        .equal_to(lambda person: person[0])
    )
    return pairs.apply(lambda auction, person: (person[1], person[2], person[3], auction[1]))
