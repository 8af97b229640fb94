"""A job with every kind of state, for savepoints that are read and changed."""

from __future__ import annotations

from typing import Any

from firesteel.common import Configuration, Types
from firesteel.datastream import (
    KeyedProcessFunction,
    MapFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.functions import (
    CheckpointedFunction,
    KeyedBroadcastProcessFunction,
)
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.testing import JobHarness

KEYS = 5
COUNT = ValueStateDescriptor("count", Types.LONG())
LAST = ListStateDescriptor("last", Types.LONG())
PARITY = MapStateDescriptor("parity", Types.STRING(), Types.LONG())
POINT = ValueStateDescriptor("point", Types.PICKLED_BYTE_ARRAY())
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())


class Point:
    """A class of the job; ``rebuilt`` counts how often one came out of a pickle."""

    rebuilt = 0

    def __init__(self, x: int) -> None:
        self.x = x

    def __setstate__(self, state: dict[str, Any]) -> None:
        Point.rebuilt += 1
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return f"Point({self.x})"


class Count(KeyedProcessFunction):
    """Gives (key, count)."""

    def __init__(self, points: bool) -> None:
        self._points = points

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(COUNT)
        self.last = runtime_context.get_list_state(LAST)
        self.parity = runtime_context.get_map_state(PARITY)
        self.point = runtime_context.get_state(POINT)

    def process_element(self, value: int, ctx: Any) -> Any:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.last.update([*list(self.last.get())[-1:], value])
        name = "odd" if value % 2 else "even"
        self.parity.put(name, (self.parity.get(name) or 0) + 1)
        if self._points:
            self.point.update(Point(value))
        ctx.timer_service().register_event_time_timer(10**12)
        yield ctx.get_current_key(), count


class Buffer(MapFunction, CheckpointedFunction):
    """Keeps what it has seen, in a list or a union list."""

    def __init__(self, union: bool) -> None:
        self._union = union

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        get = store.get_union_list_state if self._union else store.get_list_state
        self.saved = get(ListStateDescriptor("seen", Types.LONG()))
        self.seen = list(self.saved.get())

    def snapshot_state(self, context: Any) -> None:
        self.saved.update(self.seen)

    def map(self, value: int) -> int:
        self.seen.append(value)
        return value


class Limit(KeyedBroadcastProcessFunction):
    """Gives (number, limit)."""

    def process_element(self, value: int, ctx: Any) -> Any:
        yield value, ctx.get_broadcast_state(RULES).get("limit")

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(*value)


def counting(env: StreamExecutionEnvironment, *, points: bool = False, uid: str = "count") -> Any:
    """Counts numbers by their remainder."""
    numbers = env.from_collection(list(range(60)), Types.LONG()).uid("numbers")
    for union in (False, True):
        numbers = numbers.map(Buffer(union), Types.LONG()).uid("union" if union else "list")
    keyed = numbers.key_by(lambda n: n % KEYS, Types.LONG())
    return keyed.process(Count(points)).uid(uid).name("Count")


def limiting(env: StreamExecutionEnvironment) -> Any:
    numbers = env.from_collection(list(range(60)), Types.LONG()).uid("numbers")
    rules = env.from_collection([("limit", 7)]).uid("rules")
    keyed = numbers.key_by(lambda n: n % KEYS, Types.LONG())
    return keyed.connect(rules.broadcast(RULES)).process(Limit()).uid("limit")


def harness_of(program: Any, backend: str = "hashmap", **arguments: Any) -> JobHarness:
    configuration = Configuration()
    configuration.set_string("state.backend.type", backend)
    harness = JobHarness(
        program,
        parallelism=arguments.pop("parallelism", 2),
        records_per_epoch=5,
        configuration=configuration,
        checkpoint_every=0,
        **arguments,
    )
    for _ in range(3):
        harness.run_epoch()
    return harness
