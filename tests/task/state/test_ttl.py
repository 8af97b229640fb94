"""Time to live: state expires by the clock, which the tests move."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any

import pytest

from firesteel.common import Time, Types
from firesteel.datastream import EmbeddedRocksDBStateBackend
from firesteel.datastream.functions import AggregateFunction, KeyedProcessFunction
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.testing import OperatorHarness

LONG = Types.LONG()


class Sum(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + value

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class Calls(KeyedProcessFunction):
    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor

    def open(self, runtime_context: Any) -> None:
        get = {
            ValueStateDescriptor: runtime_context.get_state,
            ListStateDescriptor: runtime_context.get_list_state,
            MapStateDescriptor: runtime_context.get_map_state,
            ReducingStateDescriptor: runtime_context.get_reducing_state,
            AggregatingStateDescriptor: runtime_context.get_aggregating_state,
        }
        self.state = get[type(self._descriptor)](self._descriptor)

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value[1](self.state)


def _program(descriptor: Any) -> Callable[[Any], Any]:
    return lambda s: s.key_by(lambda v: v[0]).process(Calls(descriptor))


class Expiring:
    """A state that lives for a second."""

    def __init__(self, descriptor: Any, configure: Callable[[Any], Any] = lambda b: b) -> None:
        builder = StateTtlConfig.new_builder(Time.seconds(1)).disable_cleanup_in_background()
        descriptor.enable_time_to_live(configure(builder).build())
        self.name = descriptor.get_name()
        self.program = _program(descriptor)
        self.harness = OperatorHarness.of(self.program)

    def ask(self, call: Callable[[Any], Any], key: Any = "a") -> Any:
        self.harness.process_element((key, call))
        (result,) = self.harness.extract_output()
        return result

    def wait(self, millis: int) -> None:
        self.harness.advance_processing_time(millis)

    def stored(self) -> dict[Any, Any]:
        return self.harness.keyed_state()[self.name]


KINDS = [
    pytest.param(
        lambda: ValueStateDescriptor("s", LONG), lambda s: s.update(1), lambda s: s.value(), 1
    ),
    pytest.param(
        lambda: ListStateDescriptor("s", LONG), lambda s: s.add(1), lambda s: s.get() or None, [1]
    ),
    pytest.param(
        lambda: MapStateDescriptor("s", LONG, LONG),
        lambda s: s.put(7, 1),
        lambda s: s.get(7),
        1,
    ),
    pytest.param(
        lambda: MapStateDescriptor("s", LONG, LONG),
        lambda s: s.put(7, 1),
        lambda s: dict(s.items()) or None,
        {7: 1},
    ),
    pytest.param(
        lambda: ReducingStateDescriptor("s", max, LONG), lambda s: s.add(1), lambda s: s.get(), 1
    ),
    pytest.param(
        lambda: AggregatingStateDescriptor("s", Sum(), LONG),
        lambda s: s.add(1),
        lambda s: s.get(),
        1,
    ),
]


@pytest.mark.usefixtures("every_backend")
@pytest.mark.parametrize(("descriptor", "write", "read", "written"), KINDS)
class TestEveryKind:
    def test_a_value_expires_a_ttl_after_it_was_written(
        self, descriptor: Any, write: Any, read: Any, written: Any
    ) -> None:
        state = Expiring(descriptor())
        state.ask(write)
        state.wait(999)
        assert state.ask(read) == written
        state.wait(1)
        assert state.ask(read) is None
        assert state.stored() == {}

    def test_reading_prolongs_the_life_if_told_so(
        self, descriptor: Any, write: Any, read: Any, written: Any
    ) -> None:
        state = Expiring(descriptor(), lambda b: b.update_ttl_on_read_and_write())
        state.ask(write)
        for _ in range(3):
            state.wait(700)
            assert state.ask(read) == written
        state.wait(1000)
        assert state.ask(read) is None

    def test_writing_prolongs_the_life(
        self, descriptor: Any, write: Any, read: Any, written: Any
    ) -> None:
        state = Expiring(descriptor())
        state.ask(write)
        state.wait(700)
        state.ask(write)
        state.wait(700)
        assert state.ask(read) is not None

    def test_what_is_not_cleaned_up_can_be_seen_once_more_if_told_so(
        self, descriptor: Any, write: Any, read: Any, written: Any
    ) -> None:
        state = Expiring(descriptor(), lambda b: b.return_expired_if_not_cleaned_up())
        state.ask(write)
        state.wait(5000)
        assert state.ask(read) == written
        assert state.ask(read) is None

    def test_the_time_of_the_last_use_is_part_of_a_snapshot(
        self, descriptor: Any, write: Any, read: Any, written: Any
    ) -> None:
        state = Expiring(descriptor())
        state.ask(write)
        state.wait(600)
        snapshot = state.harness.snapshot()
        state.harness = OperatorHarness.restored(state.program, snapshot)
        state.harness.set_processing_time(999)
        assert state.ask(read) == written
        state.wait(1)
        assert state.ask(read) is None

    def test_a_ttl_added_on_restore_counts_from_the_restore(
        self, descriptor: Any, write: Any, read: Any, written: Any
    ) -> None:
        state = Expiring(descriptor())
        plain = OperatorHarness.of(_program(descriptor()))
        plain.process_element(("a", write))
        state.harness = OperatorHarness.restored(state.program, plain.snapshot())
        state.wait(600)
        snapshot = state.harness.snapshot()
        state.harness = OperatorHarness.restored(state.program, snapshot)
        state.harness.set_processing_time(999)
        assert state.ask(read) == written
        state.wait(1)
        assert state.ask(read) is None

    def test_a_ttl_dropped_on_restore_leaves_the_state(
        self, descriptor: Any, write: Any, read: Any, written: Any
    ) -> None:
        state = Expiring(descriptor())
        state.ask(write)
        state.harness = OperatorHarness.restored(_program(descriptor()), state.harness.snapshot())
        state.wait(10_000)
        assert state.ask(read) == written
        state.ask(write)
        assert state.ask(read) is not None


@pytest.mark.parametrize(("descriptor", "write", "read", "written"), KINDS)
class TestEveryKindInMemory:
    def test_incremental_clean_up_removes_what_nobody_reads(
        self, descriptor: Any, write: Any, read: Any, written: Any
    ) -> None:
        state = Expiring(descriptor(), lambda b: b.cleanup_incrementally(3, False))
        for key in range(9):
            state.ask(write, key=key)
        state.harness.snapshot()
        state.wait(1000)
        for _ in range(4):
            state.ask(write, key="fresh")
        assert list(state.stored()) == ["fresh"]

    def test_incremental_clean_up_can_go_on_with_every_record(
        self, descriptor: Any, write: Any, read: Any, written: Any
    ) -> None:
        state = Expiring(descriptor(), lambda b: b.cleanup_incrementally(3, True))
        for key in range(9):
            state.ask(write, key=key)
        state.harness.snapshot()
        state.wait(1000)
        for _ in range(3):
            state.ask(lambda _: "no access")
        assert state.stored() == {}

    def test_a_full_snapshot_leaves_out_what_has_expired_if_told_so(
        self, descriptor: Any, write: Any, read: Any, written: Any
    ) -> None:
        state = Expiring(descriptor(), lambda b: b.cleanup_full_snapshot())
        state.ask(write, key="old")
        state.wait(800)
        state.ask(write, key="new")
        state.wait(200)
        assert set(state.stored()) == {"old", "new"}
        snapshot = state.harness.snapshot()
        state.harness = OperatorHarness.restored(state.program, snapshot)
        assert set(state.stored()) == {"new"}


def test_elements_of_a_list_and_entries_of_a_map_expire_one_by_one() -> None:
    lists = Expiring(ListStateDescriptor("l", LONG))
    maps = Expiring(MapStateDescriptor("m", LONG, LONG))
    for number in range(3):
        lists.ask(methodcaller("add", number))
        maps.ask(methodcaller("put", number, number))
        lists.wait(400)
        maps.wait(400)
    assert lists.ask(lambda s: s.get()) == [1, 2]
    assert maps.ask(lambda s: dict(s.items())) == {1: 1, 2: 2}
    assert maps.ask(lambda s: (s.contains(0), s.is_empty())) == (False, False)
    maps.wait(1000)
    assert maps.ask(lambda s: s.is_empty())


def test_a_map_that_prolongs_on_reading_may_be_changed_while_it_is_read() -> None:
    state = Expiring(
        MapStateDescriptor("m", LONG, LONG), lambda b: b.update_ttl_on_read_and_write()
    )
    state.ask(lambda s: s.put_all({1: 1, 2: 2, 3: 3}))

    def change(s: Any) -> None:
        for key, _ in s.items():
            s.put(3, 30)
            s.remove(key) if key == 2 else None

    state.ask(change)
    assert state.ask(lambda s: dict(s.items())) == {1: 1, 3: 30}


def test_background_clean_up_is_on_unless_told_otherwise() -> None:
    descriptor = ValueStateDescriptor("v", LONG)
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    program = lambda s: s.key_by(lambda v: v[0]).process(Calls(descriptor))  # noqa: E731
    with OperatorHarness.of(program) as harness:
        harness.process_elements([(key, lambda s: s.update(1)) for key in range(4)])
        harness.snapshot()
        harness.advance_processing_time(1000)
        harness.process_element((0, lambda s: s.update(1)))
        assert list(harness.keyed_state()["v"]) == [0]


def test_a_disabled_time_to_live_is_none() -> None:
    state = Expiring(
        ValueStateDescriptor("v", LONG),
        lambda b: b.set_update_type(StateTtlConfig.UpdateType.Disabled),
    )
    state.ask(lambda s: s.update(1))
    state.wait(10_000)
    assert state.stored() == {"a": 1}


@pytest.mark.parametrize(("descriptor", "write", "read", "written"), KINDS)
def test_on_rocksdb_a_few_keys_are_cleaned_up_with_every_batch(
    descriptor: Any, write: Any, read: Any, written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = EmbeddedRocksDBStateBackend()
    monkeypatch.setattr(OperatorHarness, "default_state_backend", backend)
    state = Expiring(descriptor(), lambda b: b.cleanup_in_rocksdb_compact_filter(4))
    for key in range(9):
        state.ask(write, key=key)
    state.harness.snapshot()
    state.wait(1000)
    left = []
    for _ in range(3):
        state.ask(lambda _: "no access")
        left.append(len(state.stored()))
    assert left == [5, 1, 0]
    state.harness.close()
