"""The answers of the queries in plain Python, over a list of events that fits into memory.

Nothing here uses the programs of the queries, so a mistake there shows as a difference. Each
function returns the final answer: for queries that update their results, the last one of each key.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

Events = list[dict[str, Any]]
Answer = list[tuple[Any, ...]]


def _all(events: Events, kind: str) -> Events:
    return [event[kind] for event in events if kind in event]


def q0(events: Events) -> Answer:
    fields = ("auction", "bidder", "price", "dateTime", "extra")
    return [tuple(bid[field] for field in fields) for bid in _all(events, "bid")]


def q1(events: Events) -> Answer:
    return [(a, b, 0.908 * price, time, extra) for a, b, price, time, extra in q0(events)]


def q2(events: Events) -> Answer:
    return [(a, price) for a, _, price, _, _ in q0(events) if a % 123 == 0]


def q3(events: Events) -> Answer:
    people = {person["id"]: person for person in _all(events, "person")}
    found = []
    for auction in _all(events, "auction"):
        seller = people.get(auction["seller"])
        if auction["category"] == 10 and seller and seller["state"] in {"OR", "ID", "CA"}:
            found.append((seller["name"], seller["city"], seller["state"], auction["id"]))
    return found


def _winners(events: Events) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    bids = defaultdict(list)
    for bid in _all(events, "bid"):
        bids[bid["auction"]].append(bid)
    winners = []
    for auction in _all(events, "auction"):
        open_for = range(auction["dateTime"], auction["expires"] + 1)
        valid = [bid for bid in bids[auction["id"]] if bid["dateTime"] in open_for]
        if valid:
            ranked = sorted(valid, key=lambda bid: (-bid["price"], bid["dateTime"], bid["bidder"]))
            winners.append((auction, ranked[0]))
    return winners


def q4(events: Events) -> Answer:
    prices = defaultdict(list)
    for auction, bid in _winners(events):
        prices[auction["category"]].append(bid["price"])
    return [(category, sum(each) // len(each)) for category, each in prices.items()]


def q5(events: Events) -> Answer:
    counts: Counter[tuple[int, int]] = Counter()
    for bid in _all(events, "bid"):
        first_end = bid["dateTime"] // 2_000 * 2_000 + 2_000
        for end in range(first_end, first_end + 10_000, 2_000):
            counts[end, bid["auction"]] += 1
    most: dict[int, int] = {}
    for (end, _), count in counts.items():
        most[end] = max(count, most.get(end, 0))
    return [(auction, n, end) for (end, auction), n in counts.items() if n == most[end]]


def q7(events: Events) -> Answer:
    by_window = defaultdict(list)
    for bid in _all(events, "bid"):
        by_window[bid["dateTime"] // 10_000].append(bid)
    found = []
    for bids in by_window.values():
        highest = max(bid["price"] for bid in bids)
        found += [
            (bid["auction"], bid["price"], bid["bidder"], bid["dateTime"], bid["extra"])
            for bid in bids
            if bid["price"] == highest
        ]
    return found


def q8(events: Events) -> Answer:
    sold = {(one["seller"], one["dateTime"] // 10_000) for one in _all(events, "auction")}
    found = []
    for person in _all(events, "person"):
        window = person["dateTime"] // 10_000
        if (person["id"], window) in sold:
            found.append((person["id"], person["name"], window * 10_000))
    return found


def q9(events: Events) -> Answer:
    return [
        (
            auction["id"],
            auction["itemName"],
            auction["seller"],
            auction["category"],
            bid["bidder"],
            bid["price"],
            bid["dateTime"],
        )
        for auction, bid in _winners(events)
    ]


def q11(events: Events) -> Answer:
    times = defaultdict(list)
    for bid in _all(events, "bid"):
        times[bid["bidder"]].append(bid["dateTime"])
    sessions = []
    for bidder, each in times.items():
        each.sort()
        session = [each[0]]
        for time in each[1:]:
            # Two windows of ten seconds that touch are one session.
            if time - session[-1] > 10_000:
                sessions.append((bidder, len(session), session[0], session[-1] + 10_000))
                session = []
            session.append(time)
        sessions.append((bidder, len(session), session[0], session[-1] + 10_000))
    return sessions


def q14(events: Events) -> Answer:
    found = []
    for auction, bidder, price, millis, extra in q1(events):
        if 1_000_000 < price < 50_000_000:
            hour = datetime.fromtimestamp(millis / 1000, UTC).hour
            night = hour <= 6 or hour >= 20
            time = "dayTime" if 8 <= hour <= 18 else "nightTime" if night else "otherTime"
            count = sum(letter == "c" for letter in extra)
            found.append((auction, bidder, price, time, millis, extra, count))
    return found


def _ranks(price: int) -> Iterable[int]:
    """Return the columns in which a bid counts: the total, and its rank."""
    return (0, 1 if price < 10_000 else 2 if price < 1_000_000 else 3)


def _statistics(bids: Events) -> tuple[Any, ...]:
    columns: list[Events] = [[], [], [], []]
    for bid in bids:
        for column in _ranks(bid["price"]):
            columns[column].append(bid)
    last = max(bid["dateTime"] for bid in bids)
    return (
        datetime.fromtimestamp(last / 1000, UTC).strftime("%H:%M"),
        tuple(len(column) for column in columns),
        tuple(len({bid["bidder"] for bid in column}) for column in columns),
        tuple(len({bid["auction"] for bid in column}) for column in columns),
    )


def _grouped(events: Events, key: Callable[[dict[str, Any], int], Any]) -> dict[Any, Events]:
    groups = defaultdict(list)
    for bid in _all(events, "bid"):
        groups[key(bid, bid["dateTime"] // 86_400_000)].append(bid)
    return groups


def q15(events: Events) -> Answer:
    days = _grouped(events, lambda bid, day: day)
    return [(day, *_statistics(bids)[1:]) for day, bids in days.items()]


def q16(events: Events) -> Answer:
    channels = _grouped(events, lambda bid, day: (bid["channel"], day))
    return [(key, *_statistics(bids)) for key, bids in channels.items()]


def q17(events: Events) -> Answer:
    found = []
    for key, bids in _grouped(events, lambda bid, day: (bid["auction"], day)).items():
        prices = [bid["price"] for bid in bids]
        counts = _statistics(bids)[1]
        total = sum(prices)
        found.append((key, *counts, min(prices), max(prices), total // len(prices), total))
    return found


def q18(events: Events) -> Answer:
    last: dict[tuple[int, int], tuple[int, int]] = {}
    for bid in _all(events, "bid"):
        key, entry = (bid["bidder"], bid["auction"]), (bid["dateTime"], bid["price"])
        last[key] = max(entry, last.get(key, entry))
    return [(*key, *entry) for key, entry in last.items()]


def q19(events: Events) -> Answer:
    found = []
    for auction, bids in _grouped(events, lambda bid, day: bid["auction"]).items():
        ranked = sorted((-bid["price"], bid["dateTime"], bid["bidder"]) for bid in bids)
        for place, (price, time, bidder) in enumerate(ranked[:10], start=1):
            found.append((auction, place, -price, time, bidder))
    return found


def q20(events: Events) -> Answer:
    auctions = {one["id"]: one for one in _all(events, "auction") if one["category"] == 10}
    found = []
    for bid in _all(events, "bid"):
        auction = auctions.get(bid["auction"])
        if auction:
            ours = (bid["auction"], bid["bidder"], bid["price"], bid["channel"], bid["dateTime"])
            found.append((*ours, auction["itemName"], auction["seller"], auction["expires"]))
    return found


def q21(events: Events) -> Answer:
    known = {"Apple": "0", "Google": "1", "Facebook": "2", "Baidu": "3"}
    found = []
    for bid in _all(events, "bid"):
        in_url = re.findall("channel_id=(.*)$", bid["url"])
        channel_id = known.get(bid["channel"]) or (in_url[0] if in_url else None)
        if channel_id is not None:
            ours = (bid["auction"], bid["bidder"], bid["price"], bid["channel"])
            found.append((*ours, channel_id))
    return found


def q22(events: Events) -> Answer:
    found = []
    for bid in _all(events, "bid"):
        path = bid["url"].removeprefix("https://www.nexmark.com/")
        first, second, third, _ = path.split("/")
        ours = (bid["auction"], bid["bidder"], bid["price"], bid["channel"])
        found.append((*ours, first, second, third))
    return found


ANSWERS: dict[str, Callable[[Events], Answer]] = {
    "q0": q0,
    "q1": q1,
    "q2": q2,
    "q3": q3,
    "q4": q4,
    "q5": q5,
    "q7": q7,
    "q8": q8,
    "q9": q9,
    "q11": q11,
    "q14": q14,
    "q15": q15,
    "q16": q16,
    "q17": q17,
    "q18": q18,
    "q19": q19,
    "q20": q20,
    "q21": q21,
    "q22": q22,
}
