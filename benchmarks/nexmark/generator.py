"""Generator of Nexmark events: people register, open auctions and bid.

The proportions and skews are those of the published benchmark: of 50 events, 1 is a person, 3 are
auctions and 46 are bids. Half of the bids are for one hot auction. Three quarters of the auctions
belong to one hot seller, and three quarters of the bids come from one hot bidder. The hot ids move on with
time. The same seed gives the same events on every machine.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

Event = dict[str, Any]

PERSON, AUCTION, BID = 0, 1, 2

_PEOPLE_OF_50 = 1
_AUCTIONS_OF_50 = 3
_CYCLE = 50

_FIRST_PERSON = 1000
_FIRST_AUCTION = 1000
_FIRST_CATEGORY = 10
_CATEGORIES = 5

# One of so many auctions, bids or bidders is not the hot one.
_HOT_AUCTION_RATIO = 2
_HOT_SELLER_RATIO = 4
_HOT_BIDDER_RATIO = 4
_HOT_CHANNEL_RATIO = 2
# A hot id serves for so many new ids.
_HOT_SPAN = 100
# Ids are drawn from the newest people and auctions, and a few that do not exist yet.
_ACTIVE_PEOPLE = 1000
_OPEN_AUCTIONS = 100
_ID_LEAD = 10

_BEGIN_MILLIS = 1_436_918_400_000  # 2015-07-15T00:00:00Z
_EVENTS_PER_SECOND = 10_000

_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
_FIRST_NAMES = (
    "Peter",
    "Paul",
    "Luke",
    "John",
    "Saul",
    "Vicky",
    "Kate",
    "Julie",
    "Sarah",
    "Deiter",
    "Walter",
)
_LAST_NAMES = (
    "Shultz",
    "Abrams",
    "Spencer",
    "White",
    "Bartels",
    "Walton",
    "Smith",
    "Jones",
    "Noris",
)
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_OTHER_CHANNELS = 10_000

# Bytes that bring an event to the published size.
_PERSON_EXTRA = 100
_AUCTION_EXTRA = 320
_BID_EXTRA = 40

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TEXT = 1 << 16


class Generator:
    """Makes the events of a seed, one after the other."""

    def __init__(self, seed: int = 42) -> None:
        self._random = Random(seed)
        self._text = "".join(self._random.choices(_LETTERS, k=_TEXT + _AUCTION_EXTRA))
        self._hot_urls = [self._url() for _ in _HOT_CHANNELS]
        self._channels = [
            (f"channel-{number}", self._channel_url(number)) for number in range(_OTHER_CHANNELS)
        ]

    def events(self, count: int) -> Iterator[Event]:
        """Yield the first events. Each has a field ``event_type`` and one named after its kind."""
        for number in range(count):
            millis = _BEGIN_MILLIS + number * 1000 // _EVENTS_PER_SECOND
            cycle, offset = divmod(number, _CYCLE)
            # The newest ids, from 0.
            person = cycle
            auction = _AUCTIONS_OF_50 * cycle + min(offset - _PEOPLE_OF_50, _AUCTIONS_OF_50 - 1)
            if offset < _PEOPLE_OF_50:
                yield {"event_type": PERSON, "person": self._person(person, millis)}
            elif offset < _PEOPLE_OF_50 + _AUCTIONS_OF_50:
                yield {"event_type": AUCTION, "auction": self._auction(auction, person, millis)}
            else:
                yield {"event_type": BID, "bid": self._bid(auction, person, millis)}

    def _person(self, person: int, millis: int) -> Event:
        random = self._random
        name = f"{random.choice(_FIRST_NAMES)} {random.choice(_LAST_NAMES)}"
        return {
            "id": _FIRST_PERSON + person,
            "name": name,
            "emailAddress": f"{self._string(7)}@{self._string(5)}.com",
            "creditCard": " ".join(f"{random.randrange(10_000):04d}" for _ in range(4)),
            "city": random.choice(_CITIES),
            "state": random.choice(_STATES),
            "dateTime": millis,
            "extra": self._string(_PERSON_EXTRA),
        }

    def _auction(self, auction: int, person: int, millis: int) -> Event:
        random = self._random
        if random.randrange(_HOT_SELLER_RATIO):
            seller = person // _HOT_SPAN * _HOT_SPAN
        else:
            seller = self._some_person(person)
        initial = self._price()
        return {
            "id": _FIRST_AUCTION + auction,
            "itemName": self._string(20),
            "description": self._string(100),
            "initialBid": initial,
            "reserve": initial + self._price(),
            "dateTime": millis,
            "expires": millis + self._auction_millis(),
            "seller": _FIRST_PERSON + seller,
            "category": _FIRST_CATEGORY + random.randrange(_CATEGORIES),
            "extra": self._string(_AUCTION_EXTRA),
        }

    def _bid(self, auction: int, person: int, millis: int) -> Event:
        random = self._random
        if random.randrange(_HOT_AUCTION_RATIO):
            auction = auction // _HOT_SPAN * _HOT_SPAN
        else:
            oldest = max(auction - _OPEN_AUCTIONS, 0)
            auction = oldest + random.randrange(auction - oldest + 1 + _ID_LEAD)
        if random.randrange(_HOT_BIDDER_RATIO):
            bidder = person // _HOT_SPAN * _HOT_SPAN + 1
        else:
            bidder = self._some_person(person)
        if random.randrange(_HOT_CHANNEL_RATIO):
            hot = random.randrange(len(_HOT_CHANNELS))
            channel, url = _HOT_CHANNELS[hot], self._hot_urls[hot]
        else:
            channel, url = self._channels[random.randrange(_OTHER_CHANNELS)]
        return {
            "auction": _FIRST_AUCTION + auction,
            "bidder": _FIRST_PERSON + bidder,
            "price": self._price(),
            "channel": channel,
            "url": url,
            "dateTime": millis,
            "extra": self._string(_BID_EXTRA),
        }

    def _some_person(self, newest: int) -> int:
        active = min(newest + 1, _ACTIVE_PEOPLE)
        return newest + 1 - active + self._random.randrange(active + _ID_LEAD)

    def _price(self) -> int:
        return round(10 ** (self._random.random() * 6) * 100)

    def _auction_millis(self) -> int:
        """Return the length of an auction: on average until as many have opened as are open now."""
        horizon = _OPEN_AUCTIONS * _CYCLE // _AUCTIONS_OF_50 * 1000 // _EVENTS_PER_SECOND
        return 1 + self._random.randrange(max(2 * horizon, 1))

    def _string(self, length: int) -> str:
        start = self._random.randrange(_TEXT)
        return self._text[start : start + length]

    def _url(self) -> str:
        parts = "/".join(self._string(5) for _ in range(3))
        return f"https://www.nexmark.com/{parts}/item.htm?query=1"

    def _channel_url(self, number: int) -> str:
        """Return a URL. One of ten has no channel id."""
        url = self._url()
        return url if number % 10 == 0 else f"{url}&channel_id={number}"


def write(directory: Path, count: int, *, seed: int = 42, files: int = 2) -> list[Path]:
    """Write events as JSON lines. The files take turns, so that their event times go side by side."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"events-{number}.json" for number in range(files)]
    streams = [path.open("w") for path in paths]
    try:
        encode = json.JSONEncoder(separators=(",", ":")).encode
        for number, event in enumerate(Generator(seed).events(count)):
            streams[number % files].write(encode(event) + "\n")
    finally:
        for stream in streams:
            stream.close()
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description="Write Nexmark events as JSON lines.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--files", type=int, default=2)
    options = parser.parse_args()
    for path in write(options.directory, options.events, seed=options.seed, files=options.files):
        print(path)


if __name__ == "__main__":
    main()
