"""The queries of Nexmark give the answers of plain Python, and the generator is as published."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from benchmarks.nexmark.generator import AUCTION, BID, PERSON, Generator
from benchmarks.nexmark.programs import QUERIES, program
from benchmarks.nexmark.reference import ANSWERS
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.testing import JobHarness

_COUNT = 5_000
# Later than all events, so that no timestamp seems to lie in the future.
_NOW = 2e9


@pytest.fixture(scope="module")
def events() -> list[dict[str, Any]]:
    return list(Generator(seed=7).events(_COUNT))


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_gives_the_answer_of_plain_python(name: str, events: list[dict[str, Any]]) -> None:
    query = program(name)

    def build(env: StreamExecutionEnvironment) -> DataStream:
        results: DataStream = query.query(env.from_collection(events))
        return results

    harness = JobHarness(build, parallelism=2, records_per_epoch=700, now=_NOW)
    harness.run()
    results = [tuple(result) for result in harness.collected]
    if hasattr(query, "key"):
        results = list({query.key(result): result for result in results}.values())
    expected = ANSWERS[name](events)
    assert expected
    assert Counter(results) == Counter(expected)


def test_the_generator_has_the_published_proportions_and_skews(
    events: list[dict[str, Any]],
) -> None:
    kinds = Counter(event["event_type"] for event in events)
    assert kinds == {PERSON: _COUNT // 50, AUCTION: 3 * _COUNT // 50, BID: 46 * _COUNT // 50}
    bids = [event["bid"] for event in events if "bid" in event]
    hot = sum(bid["auction"] % 100 == 0 for bid in bids) / len(bids)
    assert 0.45 < hot < 0.6
    hot_bidders = sum(bid["bidder"] % 100 == 1 for bid in bids) / len(bids)
    assert 0.7 < hot_bidders < 0.8


def test_the_same_seed_gives_the_same_events(events: list[dict[str, Any]]) -> None:
    assert list(Generator(seed=7).events(_COUNT)) == events
    assert list(Generator(seed=8).events(_COUNT)) != events
