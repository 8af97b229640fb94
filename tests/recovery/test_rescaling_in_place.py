"""Running jobs change their parallelism: nothing is lost, doubled or forgotten."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.common.time import Time
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.errors import FiresteelError
from firesteel.testing import JobHarness, ScriptedSource, Timed
from tests.thoroughness import examples

EXECUTIONS = st.sampled_from(["micro-batch", "real-time"])


def configured(execution: str) -> Configuration:
    return Configuration().set_string("firesteel.execution", execution)


def totals(env: StreamExecutionEnvironment) -> Any:
    pairs = env.from_collection([(n % 11, n) for n in range(300)])
    kept = pairs.rebalance().map(lambda pair: pair)
    return kept.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))


def windows(env: StreamExecutionEnvironment) -> Any:
    script = [Timed((n % 5, 1), n * 10) for n in range(300)]
    times = env.from_source(
        ScriptedSource(script), WatermarkStrategy.for_monotonous_timestamps(), "times"
    )
    windowed = times.key_by(lambda pair: pair[0]).window(
        TumblingEventTimeWindows.of(Time.milliseconds(250))
    )
    return windowed.reduce(lambda a, b: (a[0], a[1] + b[1]))


def expected(program: Any) -> Counter[Any]:
    harness = JobHarness(program, parallelism=2)
    harness.run()
    return Counter(harness.collected)


@settings(max_examples=examples(8))
@given(
    execution=EXECUTIONS,
    first=st.integers(1, 4),
    then=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5)), min_size=1, max_size=3),
    checkpoint_every=st.sampled_from([None, 0, 2]),
    budget=st.integers(5, 40),
    program=st.sampled_from([totals, windows]),
)
def test_any_changes_give_the_results_of_a_job_without_them(
    execution: str,
    first: int,
    then: list[tuple[int, int]],
    checkpoint_every: int | None,
    budget: int,
    program: Any,
) -> None:
    harness = JobHarness(
        program,
        parallelism=first,
        records_per_epoch=budget,
        checkpoint_every=checkpoint_every,
        configuration=configured(execution),
    )
    for epochs, parallelism in then:
        for _ in range(epochs + 1):
            if not harness.run_epoch():
                break
        if harness.status.name == "RUNNING":
            try:
                harness.rescale(parallelism)
            except FiresteelError:
                # The job has ended first.
                assert harness.status.is_terminal_state()
    harness.run()
    assert harness.status.name == "FINISHED"
    if program is windows:
        assert Counter(harness.collected) == expected(program)
    else:
        # Partial sums differ with the order of records, but not their number and the last ones.
        found = harness.collected
        assert Counter(key for key, _ in found) == Counter(n % 11 for n in range(300))
        last = {key: max(total for one, total in found if one == key) for key in range(11)}
        assert last == {key: sum(range(key, 300, 11)) for key in range(11)}


@pytest.mark.parametrize("execution", ["micro-batch", "real-time"])
def test_the_job_has_the_new_subtasks_and_a_crash_returns_to_them(execution: str) -> None:
    configuration = configured(execution)
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "3")
    harness = JobHarness(
        windows,
        parallelism=1,
        records_per_epoch=20,
        checkpoint_every=1,
        configuration=configuration,
    )
    harness.run_epoch()
    before = len(harness.places())
    harness.rescale(3)
    assert len(harness.places()) > before
    harness.run_epoch()
    harness.crash()
    harness.run()
    assert len(harness.places()) > before
    assert Counter(harness.collected) == expected(windows)


def test_a_checkpoint_that_fails_leaves_the_parallelism_as_it_is() -> None:
    harness = JobHarness(windows, parallelism=2, records_per_epoch=20, checkpoint_every=0)
    harness.run_epoch()
    places = harness.places()
    harness.checkpoint_directory().parent.mkdir(parents=True, exist_ok=True)
    harness.checkpoint_directory().write_text("no directory")
    with pytest.raises(FiresteelError, match="could not be written"):
        harness.rescale(3)
    assert harness.status.name == "RUNNING"
    assert harness.places() == places
    harness.checkpoint_directory().unlink()
    harness.rescale(3)
    harness.run()
    assert Counter(harness.collected) == expected(windows)
