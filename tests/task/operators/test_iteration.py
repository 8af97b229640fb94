"""Iterations in whole jobs: feedback, termination and checkpoints."""

from __future__ import annotations

import json
from collections import Counter
from random import randrange
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from firesteel.common import Configuration, JobStatus, Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.functions import (
    CoMapFunction,
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
)
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import InvalidProgramError
from firesteel.state.key_groups import key_group_of, subtask_of
from firesteel.testing import Fault, JobHarness, ListSink, Pause, ScriptedSource, Timed
from tests.thoroughness import examples

_RESTARTS = Configuration.from_dict(
    {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "20",
        "restart-strategy.fixed-delay.delay": "1 s",
    }
)


def _iterate(env: Any, numbers: Any, max_wait: int = 50) -> Any:
    """A loop as parallel as the job, however the source is."""
    loop = env.from_collection(numbers).iterate(max_wait)
    return loop.set_parallelism(env.get_parallelism())


def _subtract_until_zero(env: Any, numbers: Any, exchange: bool) -> Any:
    loop = _iterate(env, numbers)
    through = loop.rebalance() if exchange else loop
    smaller = through.map(lambda number: number - 1)
    loop.close_with(smaller.filter(lambda number: number > 0))
    return smaller.filter(lambda number: number <= 0)


@pytest.mark.parametrize("exchange", [False, True])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_subtract_until_zero(parallelism: int, exchange: bool) -> None:
    harness = JobHarness(
        lambda env: _subtract_until_zero(env, range(1, 13), exchange),
        parallelism=parallelism,
        records_per_epoch=5,
    )
    harness.run()
    assert harness.status is JobStatus.FINISHED
    assert harness.collected == [0] * 12


def test_both_ends_of_a_loop_in_one_slot_need_no_epoch_for_each_round() -> None:
    def epochs(exchange: bool) -> int:
        harness = JobHarness(lambda env: _subtract_until_zero(env, [40], exchange))
        harness.run()
        return harness.epoch

    assert epochs(exchange=True) > 40
    assert epochs(exchange=False) < 10


def test_fibonacci_counts_the_steps_until_a_bound() -> None:
    """Flink's example: how many steps until the Fibonacci numbers after a pair exceed a bound."""

    def program(env: Any) -> Any:
        pairs = [((2, 3), 0, 2, 3), ((20, 30), 0, 20, 30), ((1, 1), 0, 1, 1)]
        loop = _iterate(env, pairs)
        step = loop.key_by(lambda record: record[0]).map(
            lambda r: (r[0], r[1] + 1, r[3], r[2] + r[3])
        )
        loop.close_with(step.filter(lambda record: record[3] < 100))
        return step.filter(lambda record: record[3] >= 100).map(lambda record: record[:2])

    harness = JobHarness(program, parallelism=2, records_per_epoch=2)
    harness.run()
    assert sorted(harness.collected) == [((1, 1), 10), ((2, 3), 8), ((20, 30), 3)]


@pytest.mark.parametrize("union", [False, True])
def test_several_feedback_streams(union: bool) -> None:
    """Collatz: even numbers take one way round, odd ones another."""

    def program(env: Any) -> Any:
        loop = _iterate(env, [(n, n) for n in range(1, 20)])
        going = loop.rebalance().filter(lambda r: r[1] != 1)
        even = going.filter(lambda r: r[1] % 2 == 0).map(lambda r: (r[0], r[1] // 2))
        odd = going.filter(lambda r: r[1] % 2 == 1).map(lambda r: (r[0], 3 * r[1] + 1))
        if union:
            loop.close_with(even.union(odd))
        else:
            loop.close_with(even)
            loop.close_with(odd)
        return loop.filter(lambda r: r[1] == 1).map(lambda r: r[0])

    harness = JobHarness(program, parallelism=2, records_per_epoch=7)
    harness.run()
    assert sorted(harness.collected) == list(range(1, 20))


class Visits(KeyedProcessFunction):
    """Counts the visits of a key; sends the record on, and round again until it was there often."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.visits = runtime_context.get_state(ValueStateDescriptor("visits", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        visits = (self.visits.value() or 0) + 1
        self.visits.update(visits)
        left = value[1] - 1
        yield (value[0], visits)
        if left > 0:
            yield AGAIN, ((value[0] + 1) % 7, left)


AGAIN = OutputTag("again", Types.PICKLED_BYTE_ARRAY())


def _visiting(env: Any, hops: list[tuple[int, int]]) -> Any:
    loop = env.from_source(ScriptedSource(hops), None, "hops").iterate(50)
    visited = loop.set_parallelism(env.get_parallelism()).uid("loop").key_by(lambda r: r[0])
    visited = visited.process(Visits()).uid("visits")
    loop.close_with(visited.get_side_output(AGAIN))
    return visited


def _expected_visits(hops: list[tuple[int, int]]) -> Counter[tuple[int, int]]:
    """The n-th visit of each key happens once, in any order."""
    total = Counter((key + hop) % 7 for key, left in hops for hop in range(left))
    return Counter((key, visit) for key, visits in total.items() for visit in range(1, visits + 1))


_hops = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 9)), max_size=12)


@given(
    hops=_hops,
    parallelism=st.integers(1, 3),
    budget=st.integers(1, 6),
    seed=st.integers(0, 9),
    inline=st.sampled_from([0, 1 << 16]),
    faults=st.dictionaries(
        st.integers(1, 12), st.tuples(st.integers(0, 5), st.sampled_from(list(Fault))), max_size=4
    ),
)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_retried_task_finds_the_feedback_that_it_found_first(
    hops, parallelism, budget, seed, inline, faults
):
    harness = JobHarness(
        lambda env: _visiting(env, hops),
        parallelism=parallelism,
        records_per_epoch=budget,
        seed=seed,
        inline_threshold=inline,
    )
    places = harness.places()
    harness.run(
        {epoch: {places[place % len(places)]: fault} for epoch, (place, fault) in faults.items()}
    )
    assert Counter(harness.collected) == _expected_visits(hops)


@given(
    hops=_hops,
    parallelism=st.integers(1, 3),
    budget=st.integers(1, 6),
    checkpoint_every=st.integers(1, 4),
    crashes=st.sets(st.integers(1, 20), max_size=4),
    inline=st.sampled_from([0, 1 << 16]),
)
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_records_in_the_loop_survive_crashes_at_any_epoch(
    hops, parallelism, budget, checkpoint_every, crashes, inline
):
    harness = JobHarness(
        lambda env: _visiting(env, hops),
        parallelism=parallelism,
        records_per_epoch=budget,
        checkpoint_every=checkpoint_every,
        inline_threshold=inline,
        configuration=_RESTARTS,
    )
    for epoch in range(1, 400):
        if harness.status.is_terminal_state():
            break
        harness.run_epoch()
        if epoch in crashes and not harness.status.is_terminal_state():
            harness.crash()
    assert harness.status is JobStatus.FINISHED
    assert Counter(harness.collected) == _expected_visits(hops)


def _has_records_under_way(harness: JobHarness) -> bool:
    return any(
        handle.segments
        for node, handle in harness.master.operator_handles()
        if node.name == "Iteration Tail"
    )


@pytest.mark.parametrize("with_savepoint", [True, False])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_loop_is_rescaled_with_all_that_is_in_it(with_savepoint: bool, backend: str) -> None:
    """2 -> 3 -> 1, each time with records in the loop."""
    hops = [(key, 20) for key in range(7)] * 3
    sink: ListSink = ListSink()

    def program(env: Any) -> None:
        _visiting(env, hops).sink_to(sink)

    settings_ = Configuration.from_dict({"state.backend.type": backend})
    harness = JobHarness(program, parallelism=2, checkpoint_every=0, configuration=settings_)
    for parallelism in (3, 1):
        for _ in range(3):
            harness.run_epoch()
        if with_savepoint:
            path = harness.stop()
        else:
            path = harness.checkpoint()
            harness.kill()
        assert _has_records_under_way(harness)
        harness = harness.resume(path, parallelism=parallelism)
    harness.run()
    assert Counter(sink.values()) == _expected_visits(hops)


class Visit(ProcessFunction):
    """Emits where a record is, and sends it round until its hops are used up."""

    again = OutputTag("again", Types.PICKLED_BYTE_ARRAY())

    def open(self, runtime_context: RuntimeContext) -> None:
        self.subtask = runtime_context.get_index_of_this_subtask()

    def process_element(self, value: Any, ctx: Any) -> Any:
        number, hops = value
        yield (number, hops, self.subtask, ctx.timestamp())
        if hops:
            yield self.again, (number, hops - 1)


def _owner(number: int, subtasks: int) -> int:
    return subtask_of(key_group_of(number, 128), subtasks, 128)


# By partitioning of the feedback: how it is made, and the subtasks that a number goes to.
_PARTITIONINGS: dict[str, tuple[Any, Any]] = {
    "forward": (lambda stream: stream, None),
    "rebalance": (lambda stream: stream.rebalance(), None),
    "shuffle": (lambda stream: stream.shuffle(), None),
    "broadcast": (lambda stream: stream.broadcast(), lambda _, subtasks: [*range(subtasks)]),
    "global": (lambda stream: stream.global_(), lambda *_: [0]),
    "key_by": (lambda s: s.key_by(lambda r: r[0]), lambda n, subtasks: [_owner(n, subtasks)]),
    "custom": (
        lambda s: s.partition_custom(lambda key, subtasks: key % subtasks, lambda r: r[0]),
        lambda number, subtasks: [number % subtasks],
    ),
    "random": (
        lambda s: s.partition_custom(lambda _, subtasks: randrange(subtasks), lambda r: r[0]),
        None,
    ),
}


@given(
    feedback=st.lists(st.sampled_from(sorted(_PARTITIONINGS)), min_size=1, max_size=2),
    parallelisms=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    stamped=st.lists(st.booleans(), min_size=1, max_size=12),
    epochs=st.integers(1, 3),
    with_savepoint=st.booleans(),
    execution=st.sampled_from(["micro-batch", "real-time"]),
    seed=st.integers(0, 99),
)
# One subtask has records with and without timestamps in the loop, the other one only without.
@example(
    feedback=["rebalance"],
    parallelisms=[2, 1],
    stamped=[True] * 4 + [False] * 4,
    epochs=1,
    with_savepoint=True,
    execution="micro-batch",
    seed=0,
)
@example(
    feedback=["broadcast", "custom"],
    parallelisms=[2, 3],
    stamped=[True] * 4 + [False] * 4,
    epochs=1,
    with_savepoint=False,
    execution="real-time",
    seed=0,
)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_rescaling_brings_every_record_of_a_loop_to_its_head_with_its_timestamp(
    feedback, parallelisms, stamped, epochs, with_savepoint, execution, seed
) -> None:
    """Numbers from 100 take the second feedback stream. A hop of a copy is a hop of its own."""
    numbers = range(len(stamped))
    sink: ListSink = ListSink()

    def program(env: Any) -> None:
        records = [(100 * way + n, 1) for n in numbers for way in range(len(feedback))]
        timed = [Timed(one, one[0] % 100) for one in records if stamped[one[0] % 100]]
        others = [one for one in records if not stamped[one[0] % 100]]
        first, second = (
            env.from_source(ScriptedSource(script, bounded=False), None, name)
            .set_parallelism(1)
            .uid(name)
            for name, script in (("timed", timed), ("others", others))
        )
        parallel = first.union(second).rebalance().map(lambda n: n)
        loop = parallel.iterate(50).uid("loop")
        visited = loop.process(Visit())
        ways = [
            _PARTITIONINGS[name][0](
                visited.get_side_output(Visit.again).filter(lambda r, way=way: r[0] // 100 == way)
            )
            for way, name in enumerate(feedback)
        ]
        loop.close_with(ways[0] if len(ways) == 1 else ways[0].union(ways[1]))
        visited.sink_to(sink).uid("sink")

    first, *others = parallelisms
    harness = JobHarness(
        program,
        parallelism=first,
        records_per_epoch=3,
        checkpoint_every=0,
        seed=seed,
        configuration=Configuration.from_dict({"firesteel.execution": execution}),
    )
    for parallelism in others:
        for _ in range(epochs):
            harness.run_epoch()
        if with_savepoint:
            path = harness.stop()
        else:
            path = harness.checkpoint()
            harness.kill()
        harness = harness.resume(path, parallelism=parallelism)
    for _ in range(20):
        harness.run_epoch()
    harness.stop()
    visits: dict[tuple[int, int], list[int]] = {}
    for number, hops, subtask, timestamp in sink.values():
        visits.setdefault((number, hops), []).append(subtask)
        assert timestamp == (number % 100 if stamped[number % 100] else None)
    for way, name in enumerate(feedback):
        targets = _PARTITIONINGS[name][1]
        for number in (100 * way + n for n in numbers):
            assert len(visits.pop((number, 1))) == 1
            came = sorted(visits.pop((number, 0)))
            if targets is None:
                assert len(came) == 1
            else:
                assert came in [targets(number, subtasks) for subtasks in parallelisms]
    assert not visits


def test_the_uid_of_the_loop_finds_its_records_again_in_a_changed_program() -> None:
    sink: ListSink = ListSink()

    def changed(env: Any) -> None:
        numbers = env.from_source(ScriptedSource([3, 3]), None, "numbers").uid("numbers")
        loop = numbers.map(lambda n: n).iterate(50).uid("loop")
        smaller = loop.rebalance().map(lambda n: n - 1)
        loop.close_with(smaller.filter(lambda n: n > 0).map(lambda n: n))
        smaller.sink_to(sink).uid("sink")

    def original(env: Any) -> None:
        loop = env.from_source(ScriptedSource([3, 3]), None, "numbers").uid("numbers").iterate(50)
        smaller = loop.uid("loop").rebalance().map(lambda n: n - 1)
        loop.close_with(smaller.filter(lambda n: n > 0))
        smaller.sink_to(sink).uid("sink")

    harness = JobHarness(original, checkpoint_every=0)
    harness.run_epoch()
    resumed = harness.resume(harness.stop(), program=changed)
    resumed.run()
    assert sorted(sink.values()) == [0, 0, 1, 1, 2, 2]


def test_large_feedback_lies_in_files_that_go_when_it_was_read() -> None:
    def program(env: Any) -> Any:
        loop = _iterate(env, [(0, bytes(1000))] * 50)
        more = loop.rebalance().map(lambda r: (r[0] + 1, r[1]))
        loop.close_with(more.filter(lambda r: r[0] < 20))
        return more.filter(lambda r: r[0] == 20).map(lambda r: r[0])

    harness = JobHarness(program, inline_threshold=1000)
    most = 0
    while harness.run_epoch():
        most = max(most, len(harness.files()))
    assert harness.collected == [20] * 50
    assert 1 <= most <= 2
    assert harness.files() == []


# -- time and the end ------------------------------------------------------------------------------


class Stamped(ProcessFunction):
    """Tells the timestamp and the watermark that each record met."""

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_timestamps_go_round_and_watermarks_do_not() -> None:
    """As in Flink: the watermark in a loop is that of its input, and MAX once that has ended."""

    def program(env: Any) -> Any:
        script = [Timed(0, 100), Pause(), Pause(), Timed(10, 200)]
        strategy = WatermarkStrategy.for_monotonous_timestamps()
        loop = env.from_source(ScriptedSource(script), strategy, "times").iterate(50)
        stamped = loop.rebalance().process(Stamped())
        loop.close_with(stamped.map(lambda r: r[0] + 1).filter(lambda n: n in (1, 11)))
        return stamped

    harness = JobHarness(program)
    harness.run()
    highest = 2**63 - 1
    assert sorted(harness.collected) == [
        (0, 100, -(2**63)),
        (1, 100, 99),
        (10, 200, 99),
        (11, 200, highest),
    ]


@pytest.mark.parametrize("exchange", [False, True])
def test_a_loop_ends_when_its_input_has_ended_and_it_was_empty_for_max_wait(exchange: bool) -> None:
    def program(env: Any) -> Any:
        script = [1, Pause(20.0), 2]
        loop = env.from_source(ScriptedSource(script), None, "slow").iterate(max_wait=5000)
        smaller = (loop.rebalance() if exchange else loop).map(lambda n: n - 1)
        loop.close_with(smaller.filter(lambda n: n > 0))
        return smaller

    harness = JobHarness(program)
    harness.run()
    assert sorted(harness.collected) == [0, 0, 1]
    assert 25_000 <= harness.now_millis() < 26_000


def _never_empty(env: Any) -> Any:
    loop = _iterate(env, [1], max_wait=1)
    loop.close_with(loop.map(lambda n: n))
    return loop


def _waiting(env: Any) -> Any:
    loop = _iterate(env, [1], max_wait=0)
    loop.close_with(loop.filter(lambda n: False))
    return loop


@pytest.mark.parametrize("program", [_never_empty, _waiting])
def test_a_loop_that_never_ends_can_be_canceled(program: Any) -> None:
    harness = JobHarness(program, records_per_epoch=3)
    for _ in range(50):
        assert harness.run_epoch()
    harness.cancel()
    harness.run()
    assert harness.status is JobStatus.CANCELED


def test_loops_within_loops_end_together_when_both_are_empty() -> None:
    """The inner loop takes the tens away, the outer one the ones."""

    def program(env: Any) -> Any:
        outer = _iterate(env, [35, 12, 7], max_wait=30)
        inner = outer.rebalance().map(lambda n: n).iterate(max_wait=30)
        tens = inner.rebalance().map(lambda n: n - 10 if n >= 10 else n)
        inner.close_with(tens.filter(lambda n: n >= 10))
        ones = tens.filter(lambda n: n < 10).map(lambda n: n - 1)
        outer.close_with(ones.filter(lambda n: n > 0))
        return ones.filter(lambda n: n <= 0)

    harness = JobHarness(program, parallelism=2)
    harness.run()
    assert harness.collected == [0, 0, 0]


def test_a_loop_goes_on_while_another_stream_feeds_it() -> None:
    def program(env: Any) -> Any:
        loop = env.from_collection([1]).iterate(max_wait=10)
        late = env.from_source(ScriptedSource([Pause(5.0), 100]), None, "late")
        smaller = loop.union(late).rebalance().map(lambda n: n - 1)
        loop.close_with(smaller.filter(lambda n: n > 97))
        return smaller

    harness = JobHarness(program)
    harness.run()
    assert sorted(harness.collected) == [0, 97, 98, 99]


def test_the_partitioning_of_the_feedback_decides_which_head_gets_it() -> None:
    def program(env: Any) -> Any:
        loop = _iterate(env, [0])
        more = loop.map(lambda n: n + 1)
        loop.close_with(more.filter(lambda n: n < 3).broadcast())
        return more

    harness = JobHarness(program, parallelism=3)
    harness.run()
    assert Counter(harness.collected) == {1: 1, 2: 3, 3: 9}


# -- connected iterations --------------------------------------------------------------------------


class Shrink(CoMapFunction):
    """Numbers go in, texts go round."""

    def map1(self, value: int) -> str:
        return "x" * value

    def map2(self, value: str) -> str:
        return value[1:]


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_feedback_of_another_type_is_the_second_of_two_streams(
    keyed: bool, parallelism: int
) -> None:
    def program(env: Any) -> Any:
        numbers = env.from_collection([3, 1, 2], Types.INT()).map(lambda n: n, Types.INT())
        loop = numbers.iterate(50).with_feedback_type(Types.STRING())
        streams = loop.key_by(lambda n: n, len) if keyed else loop
        texts = streams.map(Shrink(), Types.STRING())
        loop.close_with(texts.filter(bool))
        return texts

    harness = JobHarness(program, parallelism=parallelism)
    harness.run()
    assert Counter(harness.collected) == {"xxx": 1, "xx": 2, "x": 3, "": 3}


# -- mistakes, plans -------------------------------------------------------------------------------


def _env(parallelism: int = 1) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment(Configuration()).set_parallelism(parallelism)


def test_a_loop_that_is_never_closed_is_an_error_when_the_graph_is_built() -> None:
    env = _env()
    env.from_collection([1]).iterate().name("open loop").print()
    with pytest.raises(InvalidProgramError, match=r"'open loop'.*close_with"):
        env.get_execution_plan()


def test_feedback_must_come_from_the_loop() -> None:
    numbers = _env().from_collection([1])
    with pytest.raises(InvalidProgramError, match="does not originate from said iteration"):
        numbers.iterate().close_with(numbers.map(lambda n: n))


def test_feedback_must_be_as_parallel_as_the_stream_that_was_iterated() -> None:
    env = _env(4)
    loop = env.from_collection([1]).iterate()
    loop.close_with(loop.map(lambda n: n))
    with pytest.raises(
        InvalidProgramError, match=r"has parallelism 1, but 'Map' has parallelism 4"
    ):
        env.get_execution_plan()


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.BATCH, RuntimeExecutionMode.AUTOMATIC])
def test_iterations_are_refused_in_batch_mode(mode: RuntimeExecutionMode) -> None:
    env = _env().set_runtime_mode(mode)
    loop = env.from_collection([1]).iterate()
    loop.close_with(loop.map(lambda n: n))
    with pytest.raises(InvalidProgramError, match="not supported in BATCH execution mode"):
        env.execute()


@pytest.mark.parametrize("max_wait", [-1, 1.5, True, "1 s"])
def test_max_wait_is_a_number_of_milliseconds(max_wait: Any) -> None:
    with pytest.raises(InvalidProgramError, match="max_wait must be an int of milliseconds"):
        _env().from_collection([1]).iterate(max_wait)


def test_plans_and_pictures_show_the_way_back() -> None:
    env = _env()
    loop = env.from_collection([3]).iterate()
    loop.close_with(loop.map(lambda n: n - 1))
    loop.print()
    plan = {node["type"]: node for node in json.loads(env.get_execution_plan())["nodes"]}
    tail, head = plan["Iteration Tail"], plan["Iteration Head"]
    assert {"id": tail["id"], "ship_strategy": "FEEDBACK", "side": "feedback"} in head[
        "predecessors"
    ]
    for graph in ("stream", "job", "execution"):
        assert "--FEEDBACK-->" in env.explain(graph)
