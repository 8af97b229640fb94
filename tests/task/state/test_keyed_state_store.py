"""State of a user's function: every kind, on every backend."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from typing import Any, NamedTuple

import pytest

from firesteel.common import Row, Time, Types
from firesteel.datastream.functions import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    FoldFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    ReduceFunction,
)
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.errors import InvalidProgramError, TypeMismatchError, UserFunctionError
from firesteel.testing import OperatorHarness

ANY = Types.PICKLED_BYTE_ARRAY()

pytestmark = pytest.mark.usefixtures("every_backend")


class Calls(KeyedProcessFunction):
    """Runs what is in the record, (key, callable of the state), and emits the result."""

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self._get = get

    def open(self, runtime_context: Any) -> None:
        self.state = self._get(runtime_context)

    def process_element(self, value: Any, ctx: Any) -> Any:
        result = value[1](self.state)
        yield list(result) if hasattr(result, "__next__") else result


class StateOf:
    """A state under test: ``ask(call)`` for the key "a", or another."""

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self.program = lambda stream: stream.key_by(lambda v: v[0]).process(Calls(get))
        self.harness = OperatorHarness.of(self.program)

    def ask(self, call: Callable[[Any], Any], key: Any = "a") -> Any:
        self.harness.process_element((key, call))
        (result,) = self.harness.extract_output()
        return result

    def restart(self) -> None:
        """Restore a snapshot into a new harness, as in a new process."""
        snapshot = self.harness.snapshot()
        self.harness.close()
        self.harness = OperatorHarness.restored(self.program, snapshot)


def test_value_state_belongs_to_its_key() -> None:
    state = StateOf(lambda c: c.get_state(ValueStateDescriptor("v", Types.LONG())))
    assert state.ask(lambda s: s.value()) is None
    state.ask(lambda s: s.update(1))
    state.ask(lambda s: s.update(2), key="b")
    state.restart()
    assert state.ask(lambda s: s.value()) == 1
    assert state.ask(lambda s: s.value(), key="b") == 2
    state.ask(lambda s: s.clear())
    assert state.ask(lambda s: s.value()) is None
    assert state.harness.keyed_state() == {"v": {"b": 2}}
    state.ask(lambda s: s.update(None), key="b")
    assert state.harness.keyed_state() == {"v": {}}


def test_list_state_of_nothing_is_empty_and_not_none() -> None:
    state = StateOf(lambda c: c.get_list_state(ListStateDescriptor("l", Types.LONG())))
    assert state.ask(lambda s: s.get()) == []
    state.ask(lambda s: s.add(1))
    state.ask(lambda s: s.add_all([2, 3]))
    state.restart()
    state.ask(lambda s: s.add(4))
    assert state.ask(lambda s: s.get()) == [1, 2, 3, 4]
    assert state.ask(list) == [1, 2, 3, 4]
    state.ask(lambda s: s.update([9]))
    assert state.ask(lambda s: s.get()) == [9]
    assert state.ask(lambda s: s.get(), key="b") == []
    state.ask(lambda s: s.update([]))
    assert state.harness.keyed_state() == {"l": {}}
    state.ask(lambda s: s.add(5))
    state.ask(lambda s: s.clear())
    assert state.ask(lambda s: s.get()) == []


@pytest.mark.parametrize(
    "write", [lambda s: s.add(None), lambda s: s.add_all([2, None]), lambda s: s.update([2, None])]
)
@pytest.mark.parametrize("ttl", [False, True])
def test_list_state_refuses_none_and_stays_as_it_was(write: Any, ttl: bool) -> None:
    descriptor = ListStateDescriptor("l", Types.LONG())
    if ttl:
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
    state = StateOf(lambda c: c.get_list_state(descriptor))
    state.ask(lambda s: s.add(1))
    with pytest.raises(UserFunctionError, match="None cannot be an element of list state"):
        state.ask(write)
    assert state.ask(lambda s: s.get()) == [1]


def test_map_state_is_a_dictionary_of_its_key() -> None:
    descriptor = MapStateDescriptor("m", Types.STRING(), Types.LONG())
    state = StateOf(lambda c: c.get_map_state(descriptor))
    assert state.ask(lambda s: s.is_empty())
    assert state.ask(lambda s: s.get("x")) is None
    state.ask(lambda s: s.put("x", 1))
    state.ask(lambda s: s.put_all({"y": 2, "z": 3}))
    state.restart()
    assert state.ask(lambda s: s.get("x")) == 1
    assert state.ask(lambda s: s["y"]) == 2
    assert state.ask(lambda s: ("x" in s, s.contains("q"), s.is_empty())) == (True, False, False)
    state.ask(lambda s: s.remove("x"))
    state.ask(lambda s: s.put("w", None))
    assert sorted(state.ask(lambda s: s.items())) == [("w", None), ("y", 2), ("z", 3)]
    assert sorted(state.ask(lambda s: s.keys())) == sorted(state.ask(list)) == ["w", "y", "z"]
    assert set(state.ask(lambda s: s.values())) == {None, 2, 3}
    assert state.ask(lambda s: s.is_empty(), key="b")
    state.ask(lambda s: s.clear())
    assert state.ask(lambda s: s.is_empty())
    assert state.harness.keyed_state() == {"m": {}}


def test_a_map_may_be_changed_while_it_is_read() -> None:
    state = StateOf(lambda c: c.get_map_state(MapStateDescriptor("m", ANY, ANY)))
    state.ask(lambda s: s.put_all(dict.fromkeys(range(5), "old")))

    def read_and_change(s: Any) -> list[Any]:
        seen = []
        for key, value in s.items():
            seen.append((key, value))
            s.remove(key)
            s.put(4, "new")
            s.put(key + 100, "added")
        return seen

    assert state.ask(read_and_change) == [(key, "old") for key in range(5)]
    assert sorted(state.ask(lambda s: s.keys())) == [4, *range(100, 105)]


class Longest(ReduceFunction):
    def reduce(self, value1: str, value2: str) -> str:
        return max(value1, value2, key=len)


@pytest.mark.parametrize("function", [Longest(), lambda a, b: max(a, b, key=len)])
def test_reducing_state_reduces_what_is_added(function: Any) -> None:
    descriptor = ReducingStateDescriptor("r", function, Types.STRING())
    state = StateOf(lambda c: c.get_reducing_state(descriptor))
    assert state.ask(lambda s: s.get()) is None
    for word in ("fire", "steel", "ab"):
        state.ask(methodcaller("add", word))
    state.restart()
    assert state.ask(lambda s: s.get()) == "steel"
    state.ask(lambda s: s.add(None))
    assert state.ask(lambda s: s.get()) is None


class Mean(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        accumulator[0] += value
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: list[int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]]


def test_aggregating_state_has_another_type_than_what_is_added() -> None:
    descriptor = AggregatingStateDescriptor("a", Mean(), ANY)
    state = StateOf(lambda c: c.get_aggregating_state(descriptor))
    assert state.ask(lambda s: s.get()) is None
    state.ask(lambda s: s.add(1))
    state.ask(lambda s: s.add(2))
    state.restart()
    state.ask(lambda s: s.add(6))
    assert state.ask(lambda s: s.get()) == 3
    state.ask(lambda s: s.add(None))
    assert state.ask(lambda s: s.get()) is None


def test_what_is_read_is_a_copy_and_only_update_changes_the_state() -> None:
    state = StateOf(lambda c: c.get_state(ValueStateDescriptor("v", ANY)))
    kept = {"list": [1]}
    state.ask(lambda s: s.update(kept))
    kept["list"].append(2)
    assert state.ask(lambda s: s.value()) == {"list": [1]}
    state.harness.snapshot()
    state.ask(lambda s: s.value()["list"].append(3))
    assert state.ask(lambda s: s.value()) == {"list": [1]}


def test_elements_of_lists_and_maps_are_copies_too() -> None:
    lists = StateOf(lambda c: c.get_list_state(ListStateDescriptor("l", ANY)))
    lists.ask(lambda s: s.add([1]))
    lists.ask(lambda s: s.get()[0].append(2))
    assert lists.ask(lambda s: s.get()) == [[1]]
    maps = StateOf(lambda c: c.get_map_state(MapStateDescriptor("m", ANY, ANY)))
    maps.ask(lambda s: s.put("x", [1]))
    maps.ask(lambda s: [value.append(2) for value in s.values()])
    assert maps.ask(lambda s: s.get("x")) == [1]


class Seen(NamedTuple):
    key: str
    numbers: list[int]


_TUPLES: dict[str, tuple[Any, Callable[[Any], list[int]]]] = {
    "tuple": ((0, [1]), lambda t: t[1]),
    "named tuple": (Seen("k", [1]), lambda t: t.numbers),
    "nested": ((0, ("a", ([1],))), lambda t: t[1][1][0]),
    "in a row": (Row("a", (0, [1])), lambda t: t[1][1]),
}
_STATES: dict[str, tuple[Callable[[Any], Any], Callable[..., Any], Callable[..., Any]]] = {
    "value": (
        lambda c: c.get_state(ValueStateDescriptor("s", ANY)),
        lambda s, value: s.update(value),
        lambda s: s.value(),
    ),
    "list": (
        lambda c: c.get_list_state(ListStateDescriptor("s", ANY)),
        lambda s, value: s.add(value),
        lambda s: s.get()[0],
    ),
    "map": (
        lambda c: c.get_map_state(MapStateDescriptor("s", ANY, ANY)),
        lambda s, value: s.put("x", value),
        lambda s: s.get("x"),
    ),
    "reducing": (
        lambda c: c.get_reducing_state(ReducingStateDescriptor("s", lambda a, b: b, ANY)),
        lambda s, value: s.add(value),
        lambda s: s.get(),
    ),
}


@pytest.mark.parametrize("state_kind", _STATES)
def test_a_list_in_a_tuple_changes_by_writing_only(state_kind: str) -> None:
    get_state, write, read = _STATES[state_kind]
    state = StateOf(get_state)
    for key, (value, numbers_in) in _TUPLES.items():
        written = copy.deepcopy(value)
        state.ask(partial(write, value=written), key)
        numbers_in(written).append(2)
        assert state.ask(read, key) == value
    for _ in ("in the overlay", "in the base"):
        for key, (value, numbers_in) in _TUPLES.items():
            found = state.ask(read, key)
            numbers_in(found).append(3)
            assert state.ask(read, key) == value
        state.harness.snapshot()
    state.restart()
    assert [state.ask(read, key) for key in _TUPLES] == [value for value, _ in _TUPLES.values()]


def test_a_result_that_is_also_in_the_state_does_not_change_after_it_was_emitted() -> None:
    class History(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.seen = runtime_context.get_state(ValueStateDescriptor("seen", ANY))

        def process_element(self, value: Any, ctx: Any) -> Any:
            seen = self.seen.value() or []
            seen.append(value)
            self.seen.update(seen)
            yield seen

    with OperatorHarness.of(lambda s: s.key_by(lambda v: 0).process(History())) as harness:
        harness.process_elements([1, 2, 3])
        assert harness.output == [[1], [1, 2], [1, 2, 3]]


def test_values_take_the_declared_type() -> None:
    types = Types.ROW_NAMED(["name", "count"], [Types.STRING(), Types.LONG()])
    state = StateOf(lambda c: c.get_state(ValueStateDescriptor("v", types)))
    state.ask(lambda s: s.update(("spark", 3)))
    state.restart()
    assert state.ask(lambda s: s.value()) == Row(name="spark", count=3)


def test_a_value_that_does_not_fit_its_type_is_refused_by_name() -> None:
    state = StateOf(lambda c: c.get_state(ValueStateDescriptor("count", Types.LONG())))
    state.ask(lambda s: s.update("three"))
    with pytest.raises(TypeMismatchError, match=r"KEYED PROCESS.*'three'.*Long.*state 'count'"):
        state.harness.snapshot()


def test_a_state_that_changes_its_type_or_kind_is_refused_by_name() -> None:
    old = StateOf(lambda c: c.get_state(ValueStateDescriptor("v", Types.LONG())))
    old.ask(lambda s: s.update(1))
    snapshot = old.harness.snapshot()
    others = [
        lambda c: c.get_state(ValueStateDescriptor("v", Types.STRING())),
        lambda c: c.get_list_state(ListStateDescriptor("v", Types.LONG())),
    ]
    for get in others:
        with pytest.raises(
            UserFunctionError, match="the state 'v' exists as a value state of Long"
        ):
            OperatorHarness.restored(StateOf(get).program, snapshot)


def test_one_name_is_one_state() -> None:
    class Twice(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            descriptor = ValueStateDescriptor("v", Types.LONG())
            self.one = runtime_context.get_state(descriptor)
            self.other = runtime_context.get_state(ValueStateDescriptor("v", Types.LONG()))
            with pytest.raises(InvalidProgramError, match="is declared as ValueState"):
                runtime_context.get_list_state(ListStateDescriptor("v", Types.LONG()))
            with pytest.raises(InvalidProgramError, match="expected a MapStateDescriptor"):
                runtime_context.get_map_state(descriptor)

        def process_element(self, value: Any, ctx: Any) -> Any:
            self.one.update(value)
            yield self.other.value()

    with OperatorHarness.of(lambda s: s.key_by(lambda v: 0).process(Twice())) as harness:
        harness.process_element(5)
        assert harness.output == [5]


def test_state_outside_of_a_record_is_refused() -> None:
    class Early(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            runtime_context.get_state(ValueStateDescriptor("v", ANY)).update(1)

        def process_element(self, value: Any, ctx: Any) -> None: ...

    with pytest.raises(UserFunctionError, match="no record is being processed"):
        OperatorHarness.of(lambda s: s.key_by(lambda v: 0).process(Early())).open()


class Counting:
    """Counts the records of each key in state, whatever function it is mixed into."""

    def open(self, runtime_context: Any) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def count(self) -> int:
        count: int = (self._count.value() or 0) + 1
        self._count.update(count)
        return count


class CountingMap(Counting, MapFunction):
    def map(self, value: Any) -> Any:
        return value, self.count()


class CountingFlatMap(Counting, FlatMapFunction):
    def flat_map(self, value: Any) -> Any:
        yield value, self.count()


class CountingFilter(Counting, FilterFunction):
    def filter(self, value: Any) -> bool:
        return self.count() == 2


class CountingReduce(Counting, ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return f"{value1}{self.count()}"


class CountingFold(Counting, FoldFunction):
    def fold(self, accumulator: Any, value: Any) -> Any:
        return self.count()


@pytest.mark.parametrize("timestamps", [None, [1, 2, 3, 4]])
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda s: s.map(CountingMap()), [("a", 1), ("b", 1), ("a", 2), ("a", 3)]),
        (lambda s: s.flat_map(CountingFlatMap()), [("a", 1), ("b", 1), ("a", 2), ("a", 3)]),
        (lambda s: s.filter(CountingFilter()), ["a"]),
        (lambda s: s.reduce(CountingReduce()), ["a", "b", "a1", "a12"]),
        (lambda s: s.fold(0, CountingFold()), [1, 1, 2, 3]),
    ],
)
def test_every_function_on_a_keyed_stream_has_state(
    program: Any, expected: list[Any], timestamps: Any
) -> None:
    with OperatorHarness.of(lambda s: program(s.key_by(lambda v: v))) as harness:
        harness.process_elements(["a", "b", "a", "a"], timestamps)
        assert harness.output == expected


class CountingCoMap(Counting, CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value, self.count()

    map2 = map1


class CountingCoFlatMap(Counting, CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Any:
        yield value, self.count()

    flat_map2 = flat_map1


class CountingCoProcess(Counting, KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield value, self.count()

    process_element2 = process_element1


@pytest.mark.parametrize(
    "program",
    [
        lambda c: c.map(CountingCoMap()),
        lambda c: c.flat_map(CountingCoFlatMap()),
        lambda c: c.process(CountingCoProcess()),
    ],
)
def test_two_keyed_inputs_share_the_state_of_a_key(program: Any) -> None:
    def connected(left: Any, right: Any) -> Any:
        return program(left.connect(right).key_by(lambda v: v, lambda v: v))

    with OperatorHarness.of(connected) as harness:
        harness.process_element1("a")
        harness.process_element2("a")
        harness.process_element2("b")
        harness.process_element1("a")
        assert harness.output == [("a", 1), ("a", 2), ("b", 1), ("a", 3)]


def test_the_name_of_an_operators_own_state_is_taken() -> None:
    class Clash(ReduceFunction):
        def open(self, runtime_context: Any) -> None:
            runtime_context.get_state(ValueStateDescriptor("reduce", ANY))

        def reduce(self, value1: Any, value2: Any) -> Any: ...

    with pytest.raises(UserFunctionError, match="itself uses the state name 'reduce'"):
        OperatorHarness.of(lambda s: s.key_by(lambda v: 0).reduce(Clash())).open()
