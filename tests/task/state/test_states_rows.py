"""Rows in states: they have the field names of their type at once, in every epoch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common import Configuration, Row, Types
from firesteel.datastream import KeyedProcessFunction
from firesteel.datastream.functions import AggregateFunction, BroadcastProcessFunction
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from firesteel.errors import TypeMismatchError
from firesteel.state.operator_state import Redistribution
from firesteel.task.state.operator_state_store import TaskOperatorListState
from firesteel.testing import JobHarness, OperatorHarness
from tests.thoroughness import examples

PERSON = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.LONG()])
GROUP = Types.LIST(PERSON)


class Newest(AggregateFunction):
    def create_accumulator(self) -> Any:
        return Row("", 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return Row(*value)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator.name, accumulator.age

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_b


class ByName(KeyedProcessFunction):
    """Writes rows without names, and reads them by name, in this epoch and in later ones."""

    def open(self, runtime_context: Any) -> None:
        c = runtime_context
        self.value = c.get_state(ValueStateDescriptor("value", PERSON))
        self.group = c.get_state(ValueStateDescriptor("group", GROUP))
        self.list = c.get_list_state(ListStateDescriptor("list", PERSON))
        self.map = c.get_map_state(MapStateDescriptor("map", PERSON, PERSON))
        newer = lambda _, newer: Row(*newer)  # noqa: E731
        self.reduced = c.get_reducing_state(ReducingStateDescriptor("reduced", newer, PERSON))
        self.newest = c.get_aggregating_state(
            AggregatingStateDescriptor("newest", Newest(), PERSON)
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        if self.value.value() is not None:
            yield self._read()
        person = Row("Ada", value)
        self.value.update(person)
        self.group.update([person])
        self.list.update([])
        self.list.add(person)
        self.list.add_all([person])
        self.map.clear()
        self.map.put(person, person)
        self.reduced.add(person)
        self.newest.add(person)
        assert person == Row("Ada", value)
        yield self._read()

    def _read(self) -> Any:
        age = self.value.value().age
        person = Row("Ada", age)
        assert self.map.contains(person)
        assert self.map.get(person).name == "Ada"
        assert [key.age for key in self.map] == [age]
        assert [one.name for one in self.list.get()] == ["Ada", "Ada"]
        assert self.newest.get() == ("Ada", age)
        return age, self.reduced.get().age, self.group.value()[0].age


@settings(max_examples=examples(15), deadline=None)
@given(
    per_epoch=st.integers(1, 5),
    backend=st.sampled_from(["hashmap", "rocksdb"]),
    crash_after=st.integers(1, 3),
)
def test_rows_have_their_names_wherever_epochs_end(
    per_epoch: int, backend: str, crash_after: int
) -> None:
    def program(env: Any) -> Any:
        return env.from_collection([1, 2, 3, 4, 5]).key_by(lambda _: 0).process(ByName())

    harness = JobHarness(
        program,
        records_per_epoch=per_epoch,
        checkpoint_every=1,
        configuration=Configuration.from_dict(
            {
                "state.backend.type": backend,
                # One for the crash. A function that fails must not be tried for ever.
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": "1",
            }
        ),
    )
    for _ in range(crash_after):
        running = harness.run_epoch()
    if running:
        harness.crash()
    harness.run()
    expected = [(age,) * 3 for age in (1, 1, 2, 2, 3, 3, 4, 4, 5)]
    assert harness.collected == expected


def test_a_removed_row_is_found_without_names_too() -> None:
    class Remove(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            descriptor = MapStateDescriptor("map", PERSON, Types.LONG())
            self.map = runtime_context.get_map_state(descriptor)

        def process_element(self, value: Any, ctx: Any) -> Any:
            self.map.put_all({Row(name="Ada", age=1): 7, Row("Bob", 2): 8})
            self.map.remove(Row("Ada", 1))
            yield [key.name for key in self.map]

    with OperatorHarness.of(lambda s: s.key_by(lambda _: 0).process(Remove())) as harness:
        harness.process_element(1)
        assert harness.output == [["Bob"]]


def test_broadcast_and_list_state_have_the_names_at_once() -> None:
    people = MapStateDescriptor("people", PERSON, PERSON)

    class Greet(BroadcastProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            state = ctx.get_broadcast_state(people)
            assert state.contains(Row("Ada", value))
            yield state.get(Row("Ada", value)).name, [key.age for key in state]

        def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
            ctx.get_broadcast_state(people).put(value, value)
            ctx.get_broadcast_state(people).remove(Row("Ada", 0))

    def program(numbers: Any, rows: Any) -> Any:
        return numbers.connect(rows.broadcast(people)).process(Greet())

    with OperatorHarness.of(program) as harness:
        harness.process_element2(Row(name="Ada", age=0))
        harness.process_element2(Row("Ada", 1))
        harness.process_element1(1)
        assert harness.output == [("Ada", [1])]
    state = TaskOperatorListState(Redistribution.SPLIT, PERSON)
    state.add(Row("Ada", 1))
    state.add_all([Row("Bob", 2)])
    assert [row.name for row in state.get()] == ["Ada", "Bob"]


def test_a_row_that_does_not_fit_is_explained_when_the_epoch_ends() -> None:
    class Wrong(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.value = runtime_context.get_state(ValueStateDescriptor("people", PERSON))

        def process_element(self, value: Any, ctx: Any) -> Any:
            self.value.update(Row("Ada", "old"))
            return []

    with OperatorHarness.of(lambda s: s.key_by(lambda _: 0).process(Wrong())) as harness:
        harness.process_element(1)
        with pytest.raises(TypeMismatchError, match=r"age.*state 'people'"):
            harness.snapshot()
