"""Random jobs, and their results computed in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from firesteel.common import Types
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import KeyedProcessFunction
from firesteel.datastream.state import ValueStateDescriptor

# A record is (source, number in the source, value). Operators change the value only, so the
# order of a source's records can be followed through the job. Operators with state give records
# of their own: who meets whom in which order is open.
Record = tuple[int, int, int]

_KEYS = 3
_NUMBERED, _TOTAL = -1, -2


def _value(record: Record) -> int:
    return record[2]


def _with(record: Record, value: int) -> Record:
    return (record[0], record[1], value)


def add_one(record: Record) -> Record:
    return _with(record, _value(record) + 1)


def _is_odd(record: Record) -> bool:
    return _value(record) % 2 == 1


def _twice(record: Record) -> list[Record]:
    return [_with(record, _value(record) * 2), _with(record, _value(record) * 2 + 1)]


def _key(record: Record) -> int:
    return _value(record) % _KEYS


class Numbering(KeyedProcessFunction):
    """The number that each record has among those of its key."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: Record, ctx: Any) -> Iterator[Record]:
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        yield (_NUMBERED, ctx.get_current_key(), number)


class Totals(KeyedProcessFunction):
    """The sum of each key, when event time ends: a timer waits for that."""

    def open(self, runtime_context: Any) -> None:
        self.total = runtime_context.get_state(
            ValueStateDescriptor("total", Types.PICKLED_BYTE_ARRAY())
        )

    def process_element(self, value: Record, ctx: Any) -> Iterable[Record]:
        self.total.update((self.total.value() or 0) + _value(value))
        ctx.timer_service().register_event_time_timer(2**60)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Record]:
        yield (_TOTAL, ctx.get_current_key(), self.total.value())


@dataclass(frozen=True)
class Step:
    """Reads the stream at ``at`` (modulo how many there are); union also reads ``other``."""

    kind: str
    at: int
    other: int = 0
    parallelism: int = 1


@dataclass(frozen=True)
class Plan:
    sources: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    parallelism: int
    chaining: bool

    def build(self, env: StreamExecutionEnvironment) -> Any:
        if not self.chaining:
            env.disable_operator_chaining()
        streams = [
            env.from_collection([(source, number, value) for number, value in enumerate(values)])
            for source, values in enumerate(self.sources)
        ]
        for step in self.steps:
            stream = streams[step.at % len(streams)]
            other = streams[step.other % len(streams)]
            result = _APPLY[step.kind](stream, other)
            if step.kind in ("map", "filter", "flat_map"):
                result.set_parallelism(step.parallelism)
            streams.append(result)
        return tuple(streams[len(self.sources) :]) or tuple(s.map(add_one) for s in streams)

    def evaluate(self) -> list[Counter[Record]]:
        streams = [
            Counter((source, number, value) for number, value in enumerate(values))
            for source, values in enumerate(self.sources)
        ]
        for step in self.steps:
            stream = streams[step.at % len(streams)]
            other = streams[step.other % len(streams)]
            streams.append(_EVALUATE[step.kind](stream, other))
        return streams[len(self.sources) :] or [_each(s, lambda r: [add_one(r)]) for s in streams]


_APPLY: dict[str, Callable[[Any, Any], Any]] = {
    "map": lambda stream, _: stream.map(add_one),
    "filter": lambda stream, _: stream.filter(_is_odd),
    "flat_map": lambda stream, _: stream.flat_map(_twice),
    "union": lambda stream, other: stream.union(other),
    "rebalance": lambda stream, _: stream.rebalance(),
    "rescale": lambda stream, _: stream.rescale(),
    "shuffle": lambda stream, _: stream.shuffle(),
    "number": lambda stream, _: stream.key_by(_key).process(Numbering()),
    "total": lambda stream, _: stream.key_by(_key).process(Totals()),
}
STATELESS = ("map", "filter", "flat_map", "union", "rebalance", "rescale", "shuffle")
STATEFUL = (*STATELESS, "number", "number", "total")


def _each(stream: Counter[Record], function: Callable[[Record], list[Record]]) -> Counter[Record]:
    results: Counter[Record] = Counter()
    for record, count in stream.items():
        for result in function(record):
            results[result] += count
    return results


def _numbers(stream: Counter[Record]) -> Counter[Record]:
    counts = Counter(_key(record) for record in stream.elements())
    return Counter((_NUMBERED, key, n) for key in counts for n in range(1, counts[key] + 1))


def _totals(stream: Counter[Record]) -> Counter[Record]:
    totals: dict[int, int] = {}
    for record in stream.elements():
        totals[_key(record)] = totals.get(_key(record), 0) + _value(record)
    return Counter((_TOTAL, key, total) for key, total in totals.items())


_EVALUATE: dict[str, Callable[[Any, Any], Counter[Record]]] = {
    "map": lambda stream, _: _each(stream, lambda record: [add_one(record)]),
    "filter": lambda stream, _: _each(stream, lambda record: [record] if _is_odd(record) else []),
    "flat_map": lambda stream, _: _each(stream, _twice),
    "union": lambda stream, other: stream + other,
    "rebalance": lambda stream, _: stream,
    "rescale": lambda stream, _: stream,
    "shuffle": lambda stream, _: stream,
    "number": lambda stream, _: _numbers(stream),
    "total": lambda stream, _: _totals(stream),
}


def plans(kinds: tuple[str, ...], records: int = 20) -> st.SearchStrategy[Plan]:
    steps = st.builds(
        Step, st.sampled_from(kinds), st.integers(0, 9), st.integers(0, 9), st.integers(1, 3)
    )
    values = st.lists(st.integers(0, 50), max_size=records).map(tuple)
    return st.builds(
        Plan,
        st.lists(values, min_size=1, max_size=3).map(tuple),
        st.lists(steps, max_size=5).map(tuple),
        st.integers(1, 3),
        st.booleans(),
    )
