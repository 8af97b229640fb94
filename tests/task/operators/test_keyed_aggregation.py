"""output_mode on keyed streams: the results of an aggregation that are emitted, and their time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Configuration, Types, WatermarkStrategy
from firesteel.common.time import Time
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.errors import InvalidProgramError
from firesteel.testing import Fault, JobHarness, OperatorHarness, ScriptedSource, Timed
from tests.thoroughness import examples


def by_key(mode: str, operation: Callable[[Any], Any] = lambda keyed: keyed.sum(1)) -> Any:
    return lambda stream: operation(stream.key_by(lambda r: r[0]).output_mode(mode))


@pytest.mark.usefixtures("every_backend")
def test_update_emits_each_key_that_an_epoch_changed_once_with_its_newest_result():
    with OperatorHarness.of(by_key("update")) as harness:
        harness.process_elements([("a", 1), ("b", 10), ("a", 2)])
        assert harness.output == []
        harness.end_epoch()
        assert harness.extract_output() == [("a", ("a", 3)), ("b", ("b", 10))]
        harness.process_elements([("a", 4)])
        harness.end_epoch()
        harness.end_epoch()
        assert harness.extract_output() == [("a", ("a", 7))]


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_an_epoch_whose_records_change_no_result_emits_nothing(mode):
    with OperatorHarness.of(by_key(mode, lambda keyed: keyed.max(1))) as harness:
        harness.process_elements([("a", 5)])
        harness.end_epoch()
        harness.process_elements([("a", 3), ("a", 5)])
        harness.end_epoch()
        assert harness.output == [("a", ("a", 5))]


@pytest.mark.usefixtures("every_backend")
def test_complete_emits_the_whole_table_when_an_epoch_changed_something():
    with OperatorHarness.of(by_key("complete")) as harness:
        harness.process_elements([("a", 1), ("b", 10)])
        harness.end_epoch()
        assert sorted(harness.extract_output()) == [("a", ("a", 1)), ("b", ("b", 10))]
        harness.process_elements([("a", 1)])
        harness.end_epoch()
        harness.end_epoch()
        assert sorted(harness.extract_output()) == [("a", ("a", 2)), ("b", ("b", 10))]


def test_append_emits_each_key_once_at_the_end_of_the_input():
    with OperatorHarness.of(by_key("append")) as harness:
        harness.process_elements([("a", 1), ("b", 10)])
        harness.end_epoch()
        harness.process_elements([("a", 2)])
        assert harness.output == []
        harness.finish()
        assert sorted(harness.output) == [("a", 3), ("b", 10)]


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        (lambda keyed: keyed.sum(1), ("a", 6)),
        (lambda keyed: keyed.min(1), ("a", 1)),
        (lambda keyed: keyed.max(1), ("a", 3)),
        (lambda keyed: keyed.min_by(1), ("a", 1)),
        (lambda keyed: keyed.max_by(1), ("a", 3)),
        (lambda keyed: keyed.reduce(lambda a, b: (a[0], a[1] * b[1])), ("a", 6)),
        (lambda keyed: keyed.fold("", lambda text, r: text + str(r[1])), "231"),
    ],
)
def test_every_aggregation_has_modes(operation, result):
    for mode, expected in (("append", result), ("update", ("a", result))):
        with OperatorHarness.of(by_key(mode, operation)) as harness:
            harness.process_elements([("a", 2), ("a", 3), ("a", 1)])
            harness.finish()
            assert harness.output == [expected]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("append", [("a", 3)]),
        ("update", [("a", ("a", 3))]),
        ("complete", [("a", ("a", 3))]),
    ],
)
def test_a_batch_is_one_epoch(mode, expected):
    with OperatorHarness.of(by_key(mode), batch=True) as harness:
        harness.process_elements([("a", 1), ("a", 2)])
        harness.finish()
        assert harness.output == expected


def test_no_watermark_overtakes_the_results_of_the_records_before_it():
    for mode, stamps in (("update", [4, 7]), ("complete", [7, 7])):
        with OperatorHarness.of(by_key(mode)) as harness:
            harness.process_elements([("a", 1), ("a", 1), ("b", 1)], [5, 4, 7])
            harness.process_watermark(3)
            harness.process_idleness(True)
            assert harness.watermarks == harness.idleness == []
            harness.end_epoch()
            assert [stamp for _, stamp in harness.output_with_timestamps] == stamps
            assert (harness.watermarks, harness.idleness) == ([3], [True])


def test_final_results_come_before_the_end_of_time():
    """So windows behind them still take them."""

    def program(env: Any) -> Any:
        totals = env.from_collection([("a", 1), ("b", 10), ("a", 2)]).key_by(lambda r: r[0])
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        strategy = strategy.with_timestamp_assigner(lambda record, _: 0)
        stream = totals.output_mode("append").sum(1).assign_timestamps_and_watermarks(strategy)
        return stream.window_all(TumblingEventTimeWindows.of(Time.seconds(1))).sum(1)

    harness = JobHarness(program, records_per_epoch=1)
    harness.run()
    assert [record[1] for record in harness.collected] == [13]


def test_an_accumulator_that_is_changed_in_place_counts_as_changed():
    def append(pair: tuple[list[Any], str], record: Any) -> Any:
        pair[0].append(record[1])
        return pair

    operation = lambda keyed: keyed.fold(([], "constant"), append)  # noqa: E731
    with OperatorHarness.of(by_key("update", operation)) as harness:
        for number in range(3):
            harness.process_element(("a", number))
            harness.end_epoch()
        assert [result[0] for _, result in harness.output] == [[0], [0, 1], [0, 1, 2]]


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_results_are_typed_pairs(mode):
    def program(env: Any) -> Any:
        pairs = Types.TUPLE([Types.STRING(), Types.INT()])
        stream = env.from_collection([("a", 1), ("a", 2)], pairs)
        totals = stream.key_by(lambda r: r[0], Types.STRING()).output_mode(mode).sum(1)
        assert totals.get_type() == Types.TUPLE([Types.STRING(), pairs])
        return totals.rebalance().map(lambda pair: pair[1])

    harness = JobHarness(program, parallelism=2)
    harness.run()
    assert harness.collected == [("a", 3)]


def test_a_keyed_stream_may_have_aggregations_of_several_modes():
    def program(env: Any) -> Any:
        keyed = env.from_collection([("a", 1), ("a", 2)]).key_by(lambda r: r[0])
        return keyed.output_mode("append").sum(1), keyed.sum(1), keyed.output_mode("update").sum(1)

    harness = JobHarness(program)
    harness.run()
    assert harness.collected_by_stream == [[("a", 3)], [("a", 1), ("a", 3)], [("a", ("a", 3))]]


def test_append_needs_an_input_that_ends():
    def program(env: Any, *, bounded: bool) -> Any:
        source = ScriptedSource([("a", 1)], bounded=bounded)
        stream = env.from_source(source, None, "clicks").map(lambda r: r)
        other = env.from_source(ScriptedSource([], bounded=False), None, "other")
        other.print()
        return stream.key_by(lambda r: r[0]).output_mode("append").sum(1)

    JobHarness(lambda env: program(env, bounded=True))
    with pytest.raises(InvalidProgramError, match="'Source: clicks' never ends"):
        JobHarness(lambda env: program(env, bounded=False))


def test_modes_that_do_not_exist_are_refused():
    with pytest.raises(InvalidProgramError, match="output_mode expects"):
        OperatorHarness.of(by_key("replace"))


def test_results_go_on_after_a_restore():
    for mode, expected in (("update", [("a", ("a", 3))]), ("append", [("a", 3), ("b", 10)])):
        program = by_key(mode)
        with OperatorHarness.of(program) as harness:
            harness.process_elements([("a", 1), ("b", 10)])
            snapshot = harness.snapshot()
            harness.process_element(("a", 100))
        with OperatorHarness.restored(program, snapshot) as restored:
            restored.process_element(("a", 2))
            restored.finish()
            assert sorted(restored.output) == expected


_RECORDS = [Timed((key, n), n) for n, key in enumerate("abcabdaabbcceabcabc" * 3)]


def _run(mode: str, backend: str, budgets: list[int], faults: dict[int, Any]) -> list[Any]:
    def program(env: Any) -> Any:
        stream = env.from_source(ScriptedSource(_RECORDS), None, "records")
        return stream.key_by(lambda record: record[0]).output_mode(mode).sum(1)

    configuration = Configuration()
    configuration.set_string("state.backend.type", backend)
    harness = JobHarness(
        program, parallelism=2, records_per_epoch=budgets, configuration=configuration
    )
    places = harness.places()
    harness.run(
        {epoch: {places[i % len(places)]: f for i, f in some} for epoch, some in faults.items()}
    )
    return harness.collected


_MODES = ["append", "update", "complete"]


@settings(max_examples=examples(10), deadline=None)
@given(
    mode=st.sampled_from(_MODES),
    budgets=st.lists(st.integers(4, 20), min_size=1, max_size=3),
    faults=st.dictionaries(
        st.integers(1, 10),
        st.lists(st.tuples(st.integers(0, 9), st.sampled_from(list(Fault))), max_size=3),
        max_size=4,
    ),
)
def test_faults_change_no_result(mode, budgets, faults):
    without_faults = _run(mode, "hashmap", budgets, {})
    assert sorted(_run(mode, "hashmap", budgets, faults)) == sorted(without_faults)


@pytest.mark.parametrize("mode", _MODES)
def test_a_lost_process_changes_no_result_on_disk(mode):
    lost = {epoch: [(place, Fault.LOSE_HOST) for place in range(4)] for epoch in (2, 4)}
    assert sorted(_run(mode, "rocksdb", [7], lost)) == sorted(_run(mode, "hashmap", [7], {}))
