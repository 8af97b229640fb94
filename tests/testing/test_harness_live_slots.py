"""Jobs on live slots: any order of work gives the results that epochs one by one give."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.common.time import Time
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.testing import Fault, JobHarness, ListSink, ScriptedSource, Timed


def live(**settings: str) -> Configuration:
    configuration = Configuration()
    configuration.set_string("firesteel.execution", "real-time")
    for key, value in settings.items():
        configuration.set_string(key.replace("_", "."), value)
    return configuration


def totals(env: StreamExecutionEnvironment) -> Any:
    pairs = env.from_collection([(n % 7, n) for n in range(200)])
    return (
        pairs.rebalance()
        .map(lambda pair: pair)
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


def windows(env: StreamExecutionEnvironment) -> Any:
    script = [Timed((n % 5, 1), n * 10) for n in range(300)]
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    return (
        env.from_source(ScriptedSource(script), strategy, "times")
        .key_by(lambda pair: pair[0], key_type=Types.INT())
        .window(TumblingEventTimeWindows.of(Time.milliseconds(250)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


@cache
def expected(program: Any) -> Counter[Any]:
    harness = JobHarness(program, parallelism=2)
    harness.run()
    return Counter(harness.collected)


@given(seed=st.integers(0, 10**6), budget=st.integers(1, 60), parallelism=st.integers(1, 3))
def test_any_order_of_slots_gives_the_same_windows(
    seed: int, budget: int, parallelism: int
) -> None:
    harness = JobHarness(
        windows,
        parallelism=parallelism,
        records_per_epoch=budget,
        seed=seed,
        configuration=live(),
    )
    harness.run()
    assert Counter(harness.collected) == expected(windows)


@given(
    seed=st.integers(0, 10**6),
    faults=st.dictionaries(st.integers(1, 12), st.sampled_from(Fault), max_size=4),
    checkpoints=st.sampled_from([None, 1, 3]),
)
def test_lost_processes_lose_and_double_nothing(
    seed: int, faults: dict[int, Fault], checkpoints: int | None
) -> None:
    harness = JobHarness(
        totals,
        parallelism=2,
        records_per_epoch=25,
        seed=seed,
        checkpoint_every=checkpoints,
        configuration=live(),
    )
    places = harness.places()
    harness.run({epoch: {places[seed % len(places)]: fault} for epoch, fault in faults.items()})
    assert len(harness.collected) == 200
    last = {key: max(n for k, n in harness.collected if k == key) for key in range(7)}
    assert last == {key: sum(range(key, 200, 7)) for key in range(7)}


@pytest.mark.parametrize("seed", range(5))
def test_a_savepoint_moves_a_job_from_live_slots_to_epochs_and_back(seed: int) -> None:
    first = JobHarness(totals, parallelism=2, records_per_epoch=10, seed=seed, configuration=live())
    for _ in range(4):
        first.run_epoch()
    savepoint = first.stop()
    second = first.resume(savepoint, configuration=Configuration())
    for _ in range(4):
        second.run_epoch()
    again = second.stop()
    third = second.resume(again, configuration=live())
    third.run()
    records = [*first.collected, *second.collected, *third.collected]
    assert len(records) == 200
    assert max(n for key, n in records if key == 3) == sum(range(3, 200, 7))


def test_sinks_commit_what_a_checkpoint_holds() -> None:
    sink = ListSink()

    def program(env: StreamExecutionEnvironment) -> None:
        totals(env).map(lambda pair: pair[1]).sink_to(sink)

    harness = JobHarness(
        program, parallelism=2, records_per_epoch=25, checkpoint_every=2, configuration=live()
    )
    harness.run()
    assert len(sink.values()) == 200
