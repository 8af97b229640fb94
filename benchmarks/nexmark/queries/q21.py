"""Query 21, add channel id: looked up for known channels, taken from the URL for others."""

import re
from collections.abc import Iterator
from typing import Any

from benchmarks.nexmark.events import bids
from firesteel.datastream import DataStream

_KNOWN = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
_IN_URL = re.compile(r"(?:&|^)channel_id=([^&]*)")


def with_channel_id(bid: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    channel = bid["channel"]
    channel_id = _KNOWN.get(channel.lower())
    if channel_id is None:
        found = _IN_URL.search(bid["url"])
        if found is None:
            return
        channel_id = found[1]
    yield bid["auction"], bid["bidder"], bid["price"], channel, channel_id


def query(events: DataStream) -> DataStream:
    return bids(events).flat_map(with_channel_id)
