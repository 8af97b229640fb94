"""Broadcast state: read and write access, and snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Types
from firesteel.datastream.functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from firesteel.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.errors import UserFunctionError
from firesteel.testing import JobHarness, OperatorHarness

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
COUNT = ValueStateDescriptor("count", Types.LONG())

pytestmark = pytest.mark.usefixtures("every_backend")


class Limits(BroadcastProcessFunction):
    """Broadcast (name, limit); records (name, value) within their limit pass."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        rules = ctx.get_broadcast_state(RULES)
        if rules.contains(value[0]) and value[1] <= rules.get(value[0]):
            yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        rules = ctx.get_broadcast_state(RULES)
        if value[1] is None:
            rules.remove(value[0])
        else:
            rules.put(*value)
        yield "rules", dict(rules.items())


def _limits(records: Any, rules: Any) -> Any:
    return records.connect(rules.broadcast(RULES)).process(Limits())


def test_one_side_writes_what_the_other_reads() -> None:
    with OperatorHarness.of(_limits) as harness:
        harness.process_element1(("a", 1))
        harness.process_element2(("a", 5))
        harness.process_element1(("a", 5))
        harness.process_element1(("a", 6))
        harness.process_element2(("a", None))
        harness.process_element1(("a", 1))
        assert harness.output == [("rules", {"a": 5}), ("a", 5), ("rules", {})]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_after_a_restore_every_subtask_has_the_broadcast_state(parallelism: int) -> None:
    snapshots = []
    for subtask in range(2):
        with OperatorHarness.of(_limits, parallelism=2, subtask=subtask) as harness:
            harness.process_element2(("a", 5))
            harness.process_element2(("b", 7))
            snapshots.append(harness.snapshot())
    for subtask in range(parallelism):
        with OperatorHarness.restored(_limits, snapshots, parallelism, subtask) as harness:
            harness.process_element1(("b", 7))
            assert harness.output == [("b", 7)]


def test_broadcast_state_is_a_dictionary_that_may_change_while_it_is_read() -> None:
    answers: list[Any] = []

    class Ask(Limits):
        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            rules = ctx.get_broadcast_state(RULES)
            answers.append((rules.is_empty(), rules.get("x"), "x" in rules))
            rules.put_all({"x": 1, "y": 2})
            rules["z"] = 3
            del rules["y"]
            for key in rules.keys():  # noqa: SIM118 - the method is asked, not a dictionary
                rules.remove(key)
            rules.put("w", 4)
            answers.append((list(rules), list(rules.values()), rules["w"], rules["q"]))
            rules.clear()
            answers.append(rules.is_empty())

    program = lambda a, b: a.connect(b.broadcast(RULES)).process(Ask())  # noqa: E731
    with OperatorHarness.of(program) as harness:
        harness.process_element2("go")
    assert answers == [(True, None, False), (["w"], [4], 4, None), True]


@pytest.mark.parametrize(
    "write",
    [
        lambda rules: rules.put("a", 1),
        lambda rules: rules.put_all({"a": 1}),
        lambda rules: rules.remove("a"),
        lambda rules: rules.clear(),
        lambda rules: rules.__setitem__("a", 1),
        lambda rules: rules.__delitem__("a"),
    ],
    ids=["put", "put_all", "remove", "clear", "set", "delete"],
)
def test_the_other_side_cannot_write(write: Any) -> None:
    class Wrong(Limits):
        def process_element(self, value: Any, ctx: Any) -> Any:
            write(ctx.get_broadcast_state(RULES))

    program = lambda a, b: a.connect(b.broadcast(RULES)).process(Wrong())  # noqa: E731
    with OperatorHarness.of(program) as harness, pytest.raises(UserFunctionError) as caught:
        harness.process_element1("x")
    assert "can only be changed in process_broadcast_element" in str(caught.value)


def test_a_state_that_was_not_broadcast_is_refused() -> None:
    other = MapStateDescriptor("others", Types.STRING(), Types.LONG())
    program = lambda a, b: a.connect(b.broadcast(other)).process(Limits())  # noqa: E731
    with OperatorHarness.of(program) as harness, pytest.raises(UserFunctionError) as caught:
        harness.process_element1(("x", 1))
    assert "there is no broadcast state 'rules'; broadcast() was called with" in str(caught.value)


class Counting(KeyedBroadcastProcessFunction):
    """Counts the records of each key; a broadcast number is added to every key's count."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(COUNT)

    def process_element(self, value: Any, ctx: Any) -> Any:
        assert ctx.get_current_key() == value
        self.count.update((self.count.value() or 0) + 1)
        timers = ctx.timer_service()
        timers.register_event_time_timer(100)
        yield value, self.count.value(), ctx.get_broadcast_state(RULES).get("step")

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put("step", value)

        def add(key: Any, state: Any) -> None:
            state.update(state.value() + value)

        ctx.apply_to_keyed_state(COUNT, add)

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        step = ctx.get_broadcast_state(RULES).get("step")
        yield ctx.get_current_key(), self.count.value(), step, ctx.time_domain().name


def _counting(records: Any, steps: Any) -> Any:
    return records.key_by(lambda v: v).connect(steps.broadcast(RULES)).process(Counting())


def test_a_keyed_function_has_keyed_state_and_timers_too() -> None:
    with OperatorHarness.of(_counting) as harness:
        harness.process_elements(["a", "b", "a"])
        harness.process_element2(10)
        harness.process_element1("b")
        harness.process_watermark(100)
        assert harness.output == [
            ("a", 1, None),
            ("b", 1, None),
            ("a", 2, None),
            ("b", 12, 10),
            ("a", 12, 10, "EVENT_TIME"),
            ("b", 12, 10, "EVENT_TIME"),
        ]


def test_the_broadcast_side_has_no_key() -> None:
    class Wrong(Counting):
        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.apply_to_keyed_state(COUNT, lambda key, state: None)
            self.count.value()

    program = lambda a, b: (  # noqa: E731
        a.key_by(lambda v: v).connect(b.broadcast(RULES)).process(Wrong())
    )
    with OperatorHarness.of(program) as harness:
        harness.process_element1("a")
        with pytest.raises(UserFunctionError, match=r"use ctx\.apply_to_keyed_state"):
            harness.process_element2(1)


@pytest.mark.parametrize(
    ("descriptor", "write", "read", "expected"),
    [
        (ValueStateDescriptor("s", Types.LONG()), lambda s: s.update(1), lambda s: s.value(), 1),
        (ListStateDescriptor("s", Types.LONG()), lambda s: s.add(1), lambda s: s.get(), [1]),
        (
            MapStateDescriptor("s", Types.LONG(), Types.LONG()),
            lambda s: s.put(1, 1),
            lambda s: dict(s.items()),
            {1: 1},
        ),
        (ReducingStateDescriptor("s", max, Types.LONG()), lambda s: s.add(1), lambda s: s.get(), 1),
    ],
)
def test_every_kind_of_keyed_state_can_be_visited_and_cleared(
    descriptor: Any, write: Any, read: Any, expected: Any
) -> None:
    visited: list[Any] = []
    getters = {
        ValueStateDescriptor: "get_state",
        ListStateDescriptor: "get_list_state",
        MapStateDescriptor: "get_map_state",
        ReducingStateDescriptor: "get_reducing_state",
    }

    class Visit(KeyedBroadcastProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.state = getattr(runtime_context, getters[type(descriptor)])(descriptor)

        def process_element(self, value: Any, ctx: Any) -> Any:
            write(self.state)

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            def visit(key: Any, state: Any) -> None:
                visited.append((key, read(state)))
                state.clear()

            ctx.apply_to_keyed_state(descriptor, visit)

    program = lambda a, b: (  # noqa: E731
        a.key_by(lambda v: v).connect(b.broadcast(RULES)).process(Visit())
    )
    with OperatorHarness.of(program) as harness:
        harness.process_elements(["a", "b"])
        harness.snapshot()
        harness.process_element1("c")
        harness.process_element2("visit")
        assert sorted(visited) == [("a", expected), ("b", expected), ("c", expected)]
        assert harness.keyed_state() == {"s": {}}


def test_in_a_job_every_subtask_gets_every_broadcast_record() -> None:
    def program(env: Any) -> Any:
        rules = env.from_collection([("a", 5), ("b", 7)])
        records = env.from_collection([(name, n) for n in range(3) for name in "ab"])
        return records.rebalance().connect(rules.broadcast(RULES)).process(Limits())

    harness = JobHarness(program, parallelism=3)
    harness.run()
    tables = [tables for name, tables in harness.collected if name == "rules"]
    assert tables.count({"a": 5, "b": 7}) == 3
