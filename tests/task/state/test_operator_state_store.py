"""Operator state through CheckpointedFunction, in any function."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Types
from firesteel.datastream.functions import (
    CheckpointedFunction,
    FilterFunction,
    KeyedProcessFunction,
    MapFunction,
    SinkFunction,
)
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.errors import InvalidProgramError, TypeMismatchError, UserFunctionError
from firesteel.task.state.operator_state_store import TaskOperatorStateStore
from firesteel.testing import OperatorHarness

ANY = Types.PICKLED_BYTE_ARRAY()


class Buffer(MapFunction, CheckpointedFunction):
    """Keeps what it has seen; tells what it was restored with."""

    def __init__(self, union: bool = False, kind: Any = ANY) -> None:
        self.union = union
        self.kind = kind
        self.events: list[str] = []

    def initialize_state(self, context: Any) -> None:
        self.events.append("initialize")
        store = context.get_operator_state_store()
        get = store.get_union_list_state if self.union else store.get_list_state
        self.saved = get(ListStateDescriptor("seen", self.kind))
        self.restored = context.is_restored(), context.get_restored_checkpoint_id()
        self.seen = list(self.saved.get())

    def open(self, runtime_context: Any) -> None:
        self.events.append("open")

    def snapshot_state(self, context: Any) -> None:
        self.events.append(f"snapshot {context.get_checkpoint_id()}")
        self.saved.update(self.seen)

    def map(self, value: Any) -> Any:
        if value is None:
            return self.seen, self.restored, self.events
        self.seen.append(value)
        return None


def _ask(harness: OperatorHarness) -> Any:
    harness.extract_output()
    harness.process_element(None)
    (answer,) = harness.extract_output()
    return answer


def test_a_function_loads_before_it_opens_and_saves_at_checkpoints() -> None:
    program = lambda s: s.map(Buffer())  # noqa: E731
    with OperatorHarness.of(program) as harness:
        harness.process_elements([1, 2])
        assert _ask(harness) == ([1, 2], (False, None), ["initialize", "open"])
        snapshot = harness.snapshot()
        harness.process_element(3)
        assert _ask(harness)[2] == ["initialize", "open", "snapshot 1"]
    with OperatorHarness.restored(program, snapshot) as harness:
        assert _ask(harness) == ([1, 2], (True, 1), ["initialize", "open"])


def test_acks_have_only_state_that_has_changed() -> None:
    states = TaskOperatorStateStore()
    rules = states.get_list_state(ListStateDescriptor("rules", ANY))
    rules.add(bytes(1_000_000))
    first = states.snapshot()
    assert first is not None
    assert set(first) == {"rules"}
    assert states.snapshot() is None
    rules.add(1)
    assert states.snapshot() is not None
    assert states.snapshot() is None


@pytest.mark.parametrize(
    ("union", "parallelism", "expected"),
    [
        (False, 1, [[0, 1, 2, 10, 11, 12]]),
        (False, 2, [[0, 1, 2], [10, 11, 12]]),
        (False, 4, [[0, 1], [2, 10], [11], [12]]),
        (True, 1, [[0, 1, 2, 10, 11, 12]]),
        (True, 3, [[0, 1, 2, 10, 11, 12]] * 3),
    ],
)
def test_lists_are_divided_and_union_lists_are_not(
    union: bool, parallelism: int, expected: list[Any]
) -> None:
    program = lambda s: s.map(Buffer(union))  # noqa: E731
    snapshots = []
    for subtask in range(2):
        with OperatorHarness.of(program, parallelism=2, subtask=subtask) as harness:
            harness.process_elements([10 * subtask + number for number in range(3)])
            snapshots.append(harness.snapshot())
    restored = []
    for subtask in range(parallelism):
        with OperatorHarness.restored(program, snapshots, parallelism, subtask) as harness:
            restored.append(_ask(harness)[0])
    assert restored == expected


def test_the_list_is_the_functions_own_copy() -> None:
    class Holds(FilterFunction, CheckpointedFunction):
        def initialize_state(self, context: Any) -> None:
            self.saved = context.get_operator_state_store().get_list_state(
                ListStateDescriptor("l", ANY)
            )

        def snapshot_state(self, context: Any) -> None: ...

        def filter(self, value: Any) -> bool:
            self.saved.add(value)
            value.append("changed")
            self.saved.get()[0].append("changed")
            return bool(self.saved.get() == [[1]])

    with OperatorHarness.of(lambda s: s.filter(Holds())) as harness:
        harness.process_element([1])
        assert len(harness.output) == 1


def test_a_list_can_be_added_to_cleared_and_iterated() -> None:
    answers: list[Any] = []

    class Lists(MapFunction, CheckpointedFunction):
        def initialize_state(self, context: Any) -> None:
            store = context.get_operator_state_store()
            state = store.get_list_state(ListStateDescriptor("l", Types.LONG()))
            answers.append(state.get())
            state.add(1)
            state.add_all([2, 3])
            answers.append(list(state))
            state.clear()
            answers.append(state.get())
            store.get_broadcast_state(MapStateDescriptor("b", ANY, ANY))
            answers.append(store.get_registered_state_names())
            answers.append(store.get_registered_broadcast_state_names())

        def snapshot_state(self, context: Any) -> None: ...

        def map(self, value: Any) -> Any: ...

    OperatorHarness.of(lambda s: s.map(Lists())).open()
    assert answers == [[], [1, 2, 3], [], {"l"}, {"b"}]


def test_a_sink_function_has_operator_state_too() -> None:
    written: list[Any] = []

    class Buffering(SinkFunction, CheckpointedFunction):
        def initialize_state(self, context: Any) -> None:
            self.saved = context.get_operator_state_store().get_list_state(
                ListStateDescriptor("buffered", ANY)
            )
            self.buffered = list(self.saved.get())

        def snapshot_state(self, context: Any) -> None:
            self.saved.update(self.buffered)

        def invoke(self, value: Any, context: Any) -> None:
            self.buffered.append(value)
            if len(self.buffered) == 3:
                written.append(self.buffered)
                self.buffered = []

    program = lambda s: s.add_sink(Buffering())  # noqa: E731
    with OperatorHarness.of(program) as harness:
        harness.process_elements([1, 2, 3, 4, 5])
        snapshot = harness.snapshot()
    with OperatorHarness.restored(program, snapshot) as harness:
        harness.process_element(6)
    assert written == [[1, 2, 3], [4, 5, 6]]


def test_keyed_state_is_there_when_a_keyed_function_initializes() -> None:
    class Keyed(KeyedProcessFunction, CheckpointedFunction):
        def initialize_state(self, context: Any) -> None:
            store = context.get_keyed_state_store()
            self.count = store.get_state(ValueStateDescriptor("n", Types.LONG()))

        def snapshot_state(self, context: Any) -> None: ...

        def process_element(self, value: Any, ctx: Any) -> Any:
            self.count.update((self.count.value() or 0) + 1)
            yield value, self.count.value()

    with OperatorHarness.of(lambda s: s.key_by(lambda v: v).process(Keyed())) as harness:
        harness.process_elements(["a", "b", "a"])
        assert harness.output == [("a", 1), ("b", 1), ("a", 2)]


def test_without_a_key_there_is_no_keyed_state() -> None:
    class Wrong(MapFunction, CheckpointedFunction):
        def initialize_state(self, context: Any) -> None:
            context.get_keyed_state_store().get_state(ValueStateDescriptor("n", ANY))

        def snapshot_state(self, context: Any) -> None: ...

        def map(self, value: Any) -> Any: ...

    with pytest.raises(UserFunctionError, match="no key") as caught:
        OperatorHarness.of(lambda s: s.map(Wrong())).open()
    assert caught.value.function == Wrong.initialize_state.__qualname__


def test_a_state_that_changes_its_type_is_refused_by_name() -> None:
    with OperatorHarness.of(lambda s: s.map(Buffer(kind=Types.LONG()))) as harness:
        harness.process_element(1)
        snapshot = harness.snapshot()
    for other in (Buffer(kind=Types.STRING()), Buffer(union=True, kind=Types.LONG())):
        with pytest.raises(UserFunctionError, match="'seen' exists as a list state of LONG"):
            OperatorHarness.restored(lambda s, other=other: s.map(other), snapshot)


def test_an_element_that_does_not_fit_its_type_is_refused_by_name() -> None:
    with OperatorHarness.of(lambda s: s.map(Buffer(kind=Types.LONG()))) as harness:
        harness.process_element("one")
        with pytest.raises(TypeMismatchError, match=r"Map.*'one'.*operator state 'seen'"):
            harness.snapshot()


def test_a_descriptor_of_another_kind_is_refused() -> None:
    class Wrong(MapFunction, CheckpointedFunction):
        def initialize_state(self, context: Any) -> None:
            store = context.get_operator_state_store()
            with pytest.raises(InvalidProgramError, match="expected a ListStateDescriptor"):
                store.get_list_state(MapStateDescriptor("x", ANY, ANY))
            with pytest.raises(InvalidProgramError, match="expected a MapStateDescriptor"):
                store.get_broadcast_state(ListStateDescriptor("x", ANY))

        def snapshot_state(self, context: Any) -> None: ...

        def map(self, value: Any) -> Any: ...

    OperatorHarness.of(lambda s: s.map(Wrong())).open()


@pytest.mark.parametrize("method", ["initialize_state", "snapshot_state"])
def test_a_failure_names_the_method(method: str) -> None:
    class Bad(Buffer):
        pass

    def fail(self: Any, context: Any) -> None:
        raise ZeroDivisionError

    fail.__qualname__ = f"Bad.{method}"
    setattr(Bad, method, fail)
    with pytest.raises(UserFunctionError) as caught:
        OperatorHarness.of(lambda s: s.map(Bad())).snapshot()
    assert caught.value.function == f"Bad.{method}"


@pytest.mark.parametrize(
    "write", [lambda s: s.add(None), lambda s: s.add_all([2, None]), lambda s: s.update([2, None])]
)
def test_a_list_refuses_none_and_stays_as_it_was(write: Any) -> None:
    state = TaskOperatorStateStore().get_list_state(ListStateDescriptor("l", Types.LONG()))
    state.add(1)
    with pytest.raises(InvalidProgramError, match="None cannot be an element of list state"):
        write(state)
    assert state.get() == [1]
