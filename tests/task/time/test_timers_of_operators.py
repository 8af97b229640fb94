"""Timers of keyed functions: firing times, order and context."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common import Types
from firesteel.datastream import OutputTag, TimeDomain
from firesteel.datastream.functions import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
)
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import UserFunctionError
from firesteel.state.key_groups import key_group_of, subtask_of
from firesteel.task.record_batch import RecordBatch
from firesteel.testing import OperatorHarness
from tests.thoroughness import examples

LATE = OutputTag("late")

pytestmark = pytest.mark.usefixtures("every_backend")


class Alarm(KeyedProcessFunction):
    """Records are (key, call of the timer service); a timer emits what it sees."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        value[1](ctx.timer_service())

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        assert ctx.timestamp() == timestamp
        yield ctx.get_current_key(), timestamp, ctx.time_domain().name[0]


def _alarms(stream: Any) -> Any:
    return stream.key_by(lambda v: v[0]).process(Alarm())


def _event(*times: int) -> Any:
    return lambda timers: [timers.register_event_time_timer(time) for time in times]


def _processing(*times: int) -> Any:
    return lambda timers: [timers.register_processing_time_timer(time) for time in times]


@pytest.fixture
def harness() -> Any:
    with OperatorHarness.of(_alarms) as made:
        yield made


def test_event_timers_fire_in_time_order_once_the_watermark_has_reached_them(
    harness: OperatorHarness,
) -> None:
    harness.process_element(("a", _event(30, 10)))
    harness.process_element(("b", _event(20, 50)))
    harness.process_watermark(9)
    assert harness.output == []
    harness.process_watermark(30)
    assert harness.output == [("a", 10, "E"), ("b", 20, "E"), ("a", 30, "E")]
    assert harness.num_event_time_timers() == 1
    harness.finish()
    assert harness.output[3:] == [("b", 50, "E")]


def test_timers_fire_before_the_watermark_goes_on() -> None:
    events: list[Any] = []

    class Log(Alarm):
        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            events.append(("timer", timestamp, ctx.timer_service().current_watermark()))
            return [timestamp]

    with OperatorHarness.of(lambda s: s.key_by(lambda v: v[0]).process(Log())) as harness:
        harness.process_element(("a", _event(5)))
        output = harness._operator.output
        emit, watermark = output.emit, output.watermark

        def log_emit(batch: RecordBatch) -> None:
            events.append("emit")
            emit(batch)

        def log_watermark(timestamp: int) -> None:
            events.append(timestamp)
            watermark(timestamp)

        output.emit, output.watermark = log_emit, log_watermark
        harness.process_watermark(7)
    assert events == [("timer", 5, 7), "emit", 7]


def test_equal_timers_are_one_and_a_deleted_one_does_not_fire(harness: OperatorHarness) -> None:
    harness.process_element(("a", _event(10, 10, 20)))
    harness.process_element(("b", _event(10)))
    harness.process_element(("a", lambda t: t.delete_event_time_timer(20)))
    harness.process_element(("b", lambda t: t.delete_event_time_timer(11)))
    harness.process_element(("a", _processing(10)))
    assert harness.num_event_time_timers() == 2
    harness.process_watermark(100)
    assert harness.output == [("a", 10, "E"), ("b", 10, "E")]
    harness.process_element(("a", lambda t: t.delete_processing_time_timer(10)))
    harness.set_processing_time(100)
    assert len(harness.output) == 2


def test_a_timer_that_was_deleted_and_registered_again_fires_once(harness: OperatorHarness) -> None:
    for _ in range(3):
        harness.process_element(("a", _event(10)))
        harness.process_element(("a", lambda t: t.delete_event_time_timer(10)))
    harness.process_element(("a", _event(10)))
    harness.process_watermark(10)
    assert harness.output == [("a", 10, "E")]


def test_a_timer_registered_by_a_timer_fires_in_the_same_round_if_it_is_due() -> None:
    class Chain(Alarm):
        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield timestamp
            ctx.timer_service().register_event_time_timer(timestamp + 10)

    with OperatorHarness.of(lambda s: s.key_by(lambda v: v[0]).process(Chain())) as harness:
        harness.process_element(("a", _event(10)))
        harness.process_watermark(35)
        assert harness.output == [10, 20, 30]
        assert harness.watermarks == [35]
        assert harness.num_event_time_timers() == 1


def test_a_timer_for_the_past_fires_with_the_next_watermark(harness: OperatorHarness) -> None:
    harness.process_watermark(100)
    harness.process_element(("a", _event(50)))
    assert harness.output == []
    harness.process_watermark(101)
    assert harness.output == [("a", 50, "E")]


def test_results_of_a_timer_carry_its_time_and_may_go_to_side_outputs() -> None:
    class Side(Alarm):
        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield "main"
            yield LATE, timestamp

    with OperatorHarness.of(lambda s: s.key_by(lambda v: v[0]).process(Side())) as harness:
        harness.process_element(("a", _event(10)), timestamp=3)
        harness.process_element(("a", _processing(20)), timestamp=3)
        harness.process_watermark(10)
        harness.set_processing_time(20)
        assert harness.output_with_timestamps == [("main", 10), ("main", 20)]
        assert harness.side_output(LATE) == [10, 20]


def test_a_timer_sees_the_state_of_its_key() -> None:
    class Count(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor("n", Types.LONG()))

        def process_element(self, value: Any, ctx: Any) -> Any:
            self.count.update((self.count.value() or 0) + 1)
            ctx.timer_service().register_event_time_timer(100)

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield ctx.get_current_key(), self.count.value()
            self.count.clear()

    with OperatorHarness.of(lambda s: s.key_by(lambda v: v).process(Count())) as harness:
        harness.process_elements(["a", "b", "a", "a"])
        harness.process_watermark(100)
        assert harness.output == [("a", 3), ("b", 1)]
        assert harness.keyed_state() == {"n": {}}


def test_processing_time_timers_follow_the_clock(harness: OperatorHarness) -> None:
    harness.process_element(("a", _processing(1_000, 500)))
    harness.process_watermark(10_000)
    assert harness.output == []
    harness.set_processing_time(999)
    assert harness.output == [("a", 500, "P")]
    harness.advance_processing_time(1)
    assert harness.output == [("a", 500, "P"), ("a", 1_000, "P")]


def test_at_the_end_of_a_bounded_stream_event_timers_fire_and_processing_timers_are_dropped(
    harness: OperatorHarness,
) -> None:
    harness.process_element(("a", _event(10**15)))
    harness.process_element(("a", _processing(10**15)))
    harness.finish()
    assert harness.output == [("a", 10**15, "E")]


def test_at_the_end_of_a_batch_all_timers_fire() -> None:
    with OperatorHarness.of(_alarms, batch=True) as harness:
        harness.process_element(("a", _event(10**15)))
        harness.process_element(("a", _processing(10**15, 5)))
        assert harness.output == []
        harness.finish()
        assert harness.output == [("a", 10**15, "E"), ("a", 5, "P"), ("a", 10**15, "P")]


def test_a_failing_timer_is_named_with_its_key_and_time() -> None:
    class Bad(Alarm):
        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield 1 // 0

    with OperatorHarness.of(lambda s: s.key_by(lambda v: v[0]).process(Bad())) as harness:
        harness.process_element(("a", _event(10)))
        with pytest.raises(UserFunctionError) as caught:
            harness.process_watermark(10)
    assert caught.value.function == Bad.on_timer.__qualname__
    assert caught.value.record == "timer 10 of key 'a'"


def test_a_time_is_an_int(harness: OperatorHarness) -> None:
    with pytest.raises(UserFunctionError, match=r"time of a timer must be an int.*1\.5"):
        harness.process_element(("a", _event(1.5)))  # type: ignore[arg-type]


def test_two_keyed_inputs_share_the_timers_of_a_key() -> None:
    class Both(KeyedCoProcessFunction):
        def process_element1(self, value: Any, ctx: Any) -> Any:
            ctx.timer_service().register_event_time_timer(10)

        def process_element2(self, value: Any, ctx: Any) -> Any:
            ctx.timer_service().register_event_time_timer(10)

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            assert ctx.time_domain() is TimeDomain.EVENT_TIME
            yield ctx.get_current_key(), timestamp

    def program(left: Any, right: Any) -> Any:
        return left.connect(right).key_by(lambda v: v, lambda v: v).process(Both())

    with OperatorHarness.of(program) as harness:
        harness.process_element1("a")
        harness.process_element2("a")
        harness.process_element2("b")
        harness.process_watermark1(10)
        assert harness.output == []
        harness.process_watermark2(10)
        assert harness.output == [("a", 10), ("b", 10)]


def test_an_input_that_wakes_up_behind_holds_the_timers_of_both_back() -> None:
    """The facts of Flink's AbstractStreamOperatorTest#testIdleWatermarkHandling."""

    class Echo(KeyedCoProcessFunction):
        def process_element1(self, value: int, ctx: Any) -> Any:
            ctx.timer_service().register_event_time_timer(value)

        def process_element2(self, value: int, ctx: Any) -> Any:
            return None

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            yield timestamp

    def program(one: Any, two: Any) -> Any:
        return one.key_by(lambda _: 0).connect(two.key_by(lambda _: 0)).process(Echo())

    with OperatorHarness.of(program) as harness:
        for value in (1, 3, 4):
            harness.process_element1(value)
        harness.process_watermark1(1)
        assert harness.output == []
        harness.process_idleness(True, input_index=1)
        assert harness.output == [1]
        harness.process_watermark1(3)
        assert harness.output == [1, 3]
        harness.process_idleness(False, input_index=1)
        harness.process_watermark1(4)
        assert harness.output == [1, 3]
        assert harness.watermarks == [1, 3]
        harness.process_watermark2(4)
        assert harness.output == [1, 3, 4]


def test_a_function_without_on_timer_may_have_timers() -> None:
    class Quiet(CoProcessFunction):
        def process_element1(self, value: Any, ctx: Any) -> Any:
            ctx.timer_service().register_event_time_timer(10)

        process_element2 = process_element1

    def program(left: Any, right: Any) -> Any:
        return left.connect(right).key_by(lambda v: v, lambda v: v).process(Quiet())

    with OperatorHarness.of(program) as harness:
        harness.process_element1("a")
        harness.process_watermark(10)
        assert harness.output == []


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_pending_timers_move_with_their_keys(parallelism: int) -> None:
    keys = [f"key {number}" for number in range(50)]
    snapshots = []
    for subtask in range(2):
        with OperatorHarness.of(_alarms, parallelism=2, subtask=subtask) as harness:
            mine = [key for key in keys if subtask_of(key_group_of(key, 128), 2, 128) == subtask]
            harness.process_elements([(key, _event(10)) for key in mine])
            harness.process_elements([(key, _processing(20)) for key in mine])
            snapshots.append(harness.snapshot())
    fired: list[Any] = []
    for subtask in range(parallelism):
        with OperatorHarness.restored(_alarms, snapshots, parallelism, subtask) as harness:
            harness.process_watermark(10)
            harness.set_processing_time(20)
            fired += harness.output
    assert sorted(fired) == sorted(
        [(key, 10, "E") for key in keys] + [(key, 20, "P") for key in keys]
    )


@settings(
    deadline=None,
    # RocksDB opens a database for each example.
    max_examples=examples(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("register"), st.sampled_from("abc"), st.integers(0, 30)),
            st.tuples(st.just("delete"), st.sampled_from("abc"), st.integers(0, 30)),
            st.tuples(st.just("watermark"), st.integers(0, 40)),
            st.tuples(st.just("restore")),
        )
    )
)
def test_any_history_fires_what_a_set_of_timers_would(steps: list[tuple[Any, ...]]) -> None:
    pending: set[tuple[int, str]] = set()
    expected: list[Any] = []
    watermark = -1
    harness = OperatorHarness.of(_alarms).open()
    fired: list[Any] = []
    for name, *arguments in steps:
        if name == "register":
            key, time = arguments
            harness.process_element((key, _event(time)))
            pending.add((time, key))
        elif name == "delete":
            key, time = arguments
            harness.process_element((key, lambda t, time=time: t.delete_event_time_timer(time)))
            pending.discard((time, key))
        elif name == "watermark" and arguments[0] > watermark:
            (watermark,) = arguments
            harness.process_watermark(watermark)
            due = sorted(timer for timer in pending if timer[0] <= watermark)
            pending.difference_update(due)
            expected += due
        elif name == "restore":
            fired += harness.extract_output()
            snapshot = harness.snapshot()
            harness.close()
            harness = OperatorHarness.restored(_alarms, snapshot)
            harness.process_watermark(watermark)
            due = sorted(timer for timer in pending if timer[0] <= watermark)
            pending.difference_update(due)
            expected += due
        assert harness.num_event_time_timers() == len(pending)
    fired += harness.extract_output()
    harness.close()
    times = [time for _, time, _ in fired]
    assert sorted((time, key) for key, time, _ in fired) == sorted(expected)
    assert times == [time for time, _ in expected]
