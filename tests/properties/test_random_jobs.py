"""Random jobs with random faults equal plain Python: no record lost, none twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common.job_status import JobStatus
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.testing import Fault, JobHarness, ListSink, Pause, ScriptedSource
from tests.properties.random_plans import STATELESS, Plan, plans
from tests.thoroughness import examples

_plans = plans(STATELESS)


@dataclass(frozen=True)
class Run:
    """Conditions under which a job runs. The results must not depend on them."""

    budgets: tuple[int, ...] = (7,)
    seed: int = 0
    batch_bytes: int = 1 << 20
    inline_threshold: int = 64 * 1024
    faults: tuple[tuple[int, int, Fault], ...] = field(default=())

    def start(self, program: Any, parallelism: int) -> JobHarness:
        return JobHarness(
            program,
            parallelism=parallelism,
            records_per_epoch=self.budgets,
            seed=self.seed,
            batch_bytes=self.batch_bytes,
            inline_threshold=self.inline_threshold,
        )

    def finish(self, harness: JobHarness) -> None:
        places = harness.places()
        by_epoch: dict[int, dict[tuple[int, int], Fault]] = defaultdict(dict)
        for epoch, place, fault in self.faults:
            by_epoch[epoch][places[place % len(places)]] = fault
        harness.run(by_epoch)
        assert harness.status is JobStatus.FINISHED


_runs = st.builds(
    Run,
    st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple),
    st.integers(0, 99),
    st.sampled_from([1, 200, 1 << 20]),
    st.sampled_from([0, 100, 64 * 1024]),
    st.lists(
        st.tuples(st.integers(1, 8), st.integers(0, 20), st.sampled_from(Fault)), max_size=6
    ).map(tuple),
)

_patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(_plans, _runs)
@settings(_patient, max_examples=examples(120))
def test_a_job_without_state_gives_what_plain_python_gives(plan: Plan, run: Run) -> None:
    harness = run.start(plan.build, plan.parallelism)
    run.finish(harness)
    assert [Counter(records) for records in harness.collected_by_stream] == plan.evaluate()


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), max_size=60),
    st.integers(1, 3),
    st.integers(1, 3),
    _runs,
)
@settings(_patient, max_examples=examples(100))
def test_reductions_see_the_records_of_a_key_in_order(
    records: list[tuple[int, int]], parallelism: int, reducers: int, run: Run
) -> None:
    def program(env: StreamExecutionEnvironment) -> Any:
        stream = env.from_collection(records).map(lambda r: r).set_parallelism(1)
        return (
            stream.key_by(lambda record: record[0])
            .fold((), lambda seen, record: (*seen, record))
            .set_parallelism(reducers)
        )

    harness = run.start(program, parallelism)
    run.finish(harness)
    expected: dict[int, list[Any]] = defaultdict(list)
    seen: dict[int, tuple[Any, ...]] = defaultdict(tuple)
    for key, value in records:
        seen[key] = (*seen[key], (key, value))
        expected[key].append(seen[key])
    by_key: dict[int, list[Any]] = defaultdict(list)
    for result in harness.collected:
        by_key[result[0][0]].append(result)
    assert by_key == expected


@given(
    st.lists(st.lists(st.integers(0, 30), max_size=25), min_size=2, max_size=3),
    st.integers(1, 3),
    _runs,
)
@settings(_patient, max_examples=examples(60))
def test_reductions_behind_a_union_lose_nothing(
    sources: list[list[int]], parallelism: int, run: Run
) -> None:
    """The order in which two sources meet is open, so only the last sum of each key is known."""

    def program(env: StreamExecutionEnvironment) -> Any:
        first, *others = [env.from_collection(values).rebalance() for values in sources]
        keyed = first.union(*others).map(lambda v: (v % 4, 1, v)).key_by(lambda r: r[0])
        return keyed.reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]))

    harness = run.start(program, parallelism)
    run.finish(harness)
    expected: dict[int, tuple[int, int, int]] = {}
    for value in (value for values in sources for value in values):
        _, count, total = expected.get(value % 4, (0, 0, 0))
        expected[value % 4] = (value % 4, count + 1, total + value)
    results: dict[int, list[Any]] = defaultdict(list)
    for result in harness.collected:
        results[result[0]].append(result)
    assert {key: rows[-1] for key, rows in results.items()} == expected
    for rows in results.values():
        assert [count for _, count, _ in rows] == list(range(1, len(rows) + 1))


@given(st.lists(st.sampled_from([*range(8), Pause()]), max_size=40), st.integers(1, 3), _runs)
@settings(_patient, max_examples=examples(60))
def test_a_list_sink_has_each_record_exactly_once(
    script: list[Any], parallelism: int, run: Run
) -> None:
    sink = ListSink()
    source = ScriptedSource(script)

    def program(env: StreamExecutionEnvironment) -> None:
        stream = env.from_source(source, None, "script").rebalance()
        stream.map(lambda value: value * 10).sink_to(sink)

    harness = run.start(program, parallelism)
    run.finish(harness)
    assert Counter(sink.values()) == Counter(value * 10 for value in source.records())
    assert harness.status is JobStatus.FINISHED


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("fault", [None, *Fault], ids=lambda fault: fault and fault.name)
def test_every_operator_runs_once_per_record(parallelism: int, fault: Fault | None) -> None:
    """3 sources, 4 branches, a self-union, 5 sinks: counted in the records themselves."""

    def visit(name: str) -> Callable[[Any], Any]:
        return lambda record: (record[0], (*record[1], name))

    def program(env: StreamExecutionEnvironment) -> Any:
        sources = [
            env.from_collection([((name, number), ()) for number in range(25)]) for name in "abc"
        ]
        merged = sources[0].union(*sources[1:]).rebalance().map(visit("merge"))
        first = merged.map(visit("first"))
        second = merged.rebalance().map(visit("second"))
        third = merged.key_by(lambda record: record[0]).map(visit("third"))
        fourth = merged.flat_map(lambda record: [visit("fourth")(record)])
        doubled = first.union(first).map(visit("doubled"))
        return first, second, third, fourth, doubled

    harness = JobHarness(program, parallelism=parallelism, records_per_epoch=4, seed=parallelism)
    faults = {}
    if fault is not None:
        faults = {
            epoch: {place: fault for index, place in enumerate(harness.places()) if index % 2 == 0}
            for epoch in (2, 3)
        }
    harness.run(faults)
    ids = [(name, number) for name in "abc" for number in range(25)]
    paths = [("first", 1), ("second", 1), ("third", 1), ("fourth", 1), ("doubled", 2)]
    for (name, times), records in zip(paths, harness.collected_by_stream, strict=True):
        trace = ("merge", "first", "doubled") if name == "doubled" else ("merge", name)
        assert Counter(records) == Counter({(key, trace): times for key in ids})
