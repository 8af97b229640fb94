"""Programs of Flink's own batch tests, with their results. Harness and Spark run the same ones.

The facts are those of SortingBoundedInputITCase and DataStreamBatchExecutionITCase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.common.time import Time
from firesteel.common.typeinfo import Types
from firesteel.common.watermark_strategy import (
    TimestampAssigner,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from firesteel.datastream import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessJoinFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from firesteel.datastream.state import MapStateDescriptor, ValueStateDescriptor
from firesteel.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows


class Second(TimestampAssigner):
    """The second field is the timestamp."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class WatermarksInBetween(WatermarkGenerator):
    """Watermarks that would make records late if a batch heeded them."""

    def on_event(self, value: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp in (4, 14):
            output.emit_watermark(event_timestamp + 1)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Emit nothing."""


EVENTS = [(1, 3), (1, 1), (2, 1), (1, 4), (2, 3), (1, 2), (1, 13), (1, 11), (2, 14), (1, 11)]


def timed(env: StreamExecutionEnvironment, records: Iterable[tuple[Any, ...]]) -> Any:
    strategy = WatermarkStrategy.for_generator(WatermarksInBetween)
    return env.from_collection(list(records)).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(Second())
    )


class Counts:
    """Counts the records of each ten milliseconds, and checks their order."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._counts = runtime_context.get_map_state(
            MapStateDescriptor("counts", Types.LONG(), Types.INT())
        )
        self._previous = runtime_context.get_state(ValueStateDescriptor("previous", Types.LONG()))
        self._keys: list[Any] = []

    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        if not self._keys or self._keys[-1] != value:
            assert value not in self._keys, f"the records of {value} are not together"
            self._keys.append(value)
        now = ctx.timestamp()
        next_ten = (now + 10) // 10 * 10
        ctx.timer_service().register_event_time_timer(next_ten)
        assert ctx.timer_service().current_watermark() == MIN_WATERMARK
        assert now >= (self._previous.value() or 0)
        self._previous.update(now)
        self._counts.put(next_ten, (self._counts.get(next_ten) or 0) + 1)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        assert ctx.timer_service().current_watermark() == MAX_WATERMARK
        yield timestamp, ctx.get_current_key(), self._counts.get(timestamp)
        self._counts.remove(timestamp)
        # It would go on forever.
        ctx.timer_service().register_event_time_timer(timestamp + 1)
        ctx.timer_service().register_processing_time_timer(timestamp + 1)


class CountPerTen(Counts, KeyedProcessFunction):
    """For one input."""


class CountTwoPerTen(Counts, KeyedCoProcessFunction):
    """For two inputs."""

    process_element1 = process_element2 = Counts.process_element


def timers_of_one_input(env: StreamExecutionEnvironment) -> Any:
    keys = timed(env, EVENTS).map(lambda event: event[0])
    return keys.key_by(lambda key: key).process(CountPerTen())


def timers_of_two_inputs(env: StreamExecutionEnvironment) -> Any:
    first, second = (timed(env, EVENTS).map(lambda event: event[0]) for _ in range(2))
    connected = first.connect(second).key_by(lambda key: key, lambda key: key)
    return connected.process(CountTwoPerTen())


def one_result_per_key_of_reduce(env: StreamExecutionEnvironment) -> Any:
    return env.from_sequence(0, 10).key_by(lambda n: n % 2).reduce(lambda a, b: a + b)


def one_result_per_key_of_sum(env: StreamExecutionEnvironment) -> Any:
    return env.from_sequence(0, 10).key_by(lambda n: n % 2).sum()


class TimestampOf(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, ctx.timestamp()


def results_have_the_maximum_timestamp(env: StreamExecutionEnvironment) -> Any:
    maxima = timed(env, EVENTS).key_by(lambda event: event[0]).max(1)
    return maxima.key_by(lambda event: event[0]).process(TimestampOf())


RULES = MapStateDescriptor("rules", Types.STRING(), Types.STRING())
KEYED_STATE = ValueStateDescriptor("keyed", Types.STRING())
REGULAR = [
    ("regular1", 1),
    ("regular1", 2),
    ("regular2", 2),
    ("regular1", 3),
    ("regular1", 4),
    ("regular1", 3),
    ("regular2", 5),
    ("regular1", 5),
    ("regular2", 3),
    ("regular1", 3),
]


def _must_not_be_called(key: Any, state: Any) -> None:
    raise AssertionError("there is no keyed state before the broadcast side has ended")


class KeyedRules(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, sorted(ctx.get_broadcast_state(RULES).keys())

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(value[0], value[0])
        ctx.apply_to_keyed_state(KEYED_STATE, _must_not_be_called)


class Rules(BroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, sorted(ctx.get_broadcast_state(RULES).keys())

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(value[0], value[0])


def _rules(env: StreamExecutionEnvironment) -> Any:
    return timed(env, [("bc1", 1), ("bc2", 2), ("bc3", 3)]).broadcast(RULES)


def broadcast_before_keyed(env: StreamExecutionEnvironment) -> Any:
    keyed = timed(env, REGULAR).key_by(lambda event: event[0])
    return keyed.connect(_rules(env)).process(KeyedRules())


def broadcast_before_others(env: StreamExecutionEnvironment) -> Any:
    return timed(env, REGULAR).connect(_rules(env)).process(Rules())


def broadcast_before_others_of_its_slot(env: StreamExecutionEnvironment) -> Any:
    """The main side comes from a subtask of the same slot, which reads an exchange of its own."""
    regular = timed(env, REGULAR).rebalance().map(lambda event: event)
    return regular.connect(_rules(env)).process(Rules())


def windows_key_by_key(env: StreamExecutionEnvironment) -> Any:
    windows = timed(env, EVENTS).key_by(lambda event: event[0])
    tens = windows.window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return tens.reduce(lambda a, b: (a[0], a[1] + b[1]))


def sessions_key_by_key(env: StreamExecutionEnvironment) -> Any:
    windows = timed(env, EVENTS).key_by(lambda event: event[0])
    sessions = windows.window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
    return sessions.reduce(lambda a, b: (a[0], a[1] + b[1]))


class _Pair(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield left[0], right[1], left[1]


def interval_join_key_by_key(env: StreamExecutionEnvironment) -> Any:
    left = timed(env, EVENTS).key_by(lambda event: event[0])
    right = timed(env, [(2, 2), (1, 12), (3, 3), (1, 1)]).key_by(lambda event: event[0])
    joined = left.interval_join(right).between(Time.milliseconds(-1), Time.milliseconds(1))
    return joined.process(_Pair())


@dataclass(frozen=True)
class BatchProgram:
    """A program with its results in order, for parallelism 1.

    build: makes the stream.
    expected: its records.
    """

    build: Callable[[StreamExecutionEnvironment], Any]
    expected: list[Any]

    def __call__(self, env: StreamExecutionEnvironment) -> Any:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        return self.build(env)


_ALL_RULES = ["bc1", "bc2", "bc3"]

PROGRAMS = [
    BatchProgram(timers_of_one_input, [(10, 1, 4), (20, 1, 3), (10, 2, 2), (20, 2, 1)]),
    BatchProgram(timers_of_two_inputs, [(10, 1, 8), (20, 1, 6), (10, 2, 4), (20, 2, 2)]),
    BatchProgram(one_result_per_key_of_reduce, [30, 25]),
    BatchProgram(one_result_per_key_of_sum, [30, 25]),
    BatchProgram(
        results_have_the_maximum_timestamp,
        [((1, 13), MAX_WATERMARK), ((2, 14), MAX_WATERMARK)],
    ),
    BatchProgram(broadcast_before_keyed, [(event, _ALL_RULES) for event in sorted(REGULAR)]),
    BatchProgram(broadcast_before_others, [(event, _ALL_RULES) for event in REGULAR]),
    BatchProgram(broadcast_before_others_of_its_slot, [(event, _ALL_RULES) for event in REGULAR]),
    BatchProgram(windows_key_by_key, [(1, 10), (1, 35), (2, 4), (2, 14)]),
    BatchProgram(sessions_key_by_key, [(1, 10), (1, 35), (2, 4), (2, 14)]),
    BatchProgram(
        interval_join_key_by_key,
        [(1, 1, 1), (1, 1, 2), (1, 12, 11), (1, 12, 11), (1, 12, 13), (2, 2, 1), (2, 2, 3)],
    ),
]
