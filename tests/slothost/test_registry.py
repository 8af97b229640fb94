"""The slots of one process."""

from __future__ import annotations

from typing import Any

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import MapFunction
from firesteel.protocol.messages import SlotAddress
from firesteel.protocol.program import JobProgram, PackedProgram
from firesteel.slothost.registry import SlotRegistry
from firesteel.task.operators.map import MapOperator
from firesteel.task.slot import Slot


class Identity(MapFunction):
    def map(self, value: Any) -> Any:
        return value


class Loader:
    def __init__(self) -> None:
        env = StreamExecutionEnvironment().set_parallelism(2)
        env.from_sequence(1, 3).map(Identity()).print()
        self.packed = PackedProgram.pack(JobProgram("job", "job", 0, env._compile("job").levels))
        self.calls = 0

    def __call__(self) -> PackedProgram:
        self.calls += 1
        return self.packed


def _address(slot: int, job: str = "job", attempt: int = 0) -> SlotAddress:
    return SlotAddress(job, attempt, 0, slot, 1)


def test_a_slot_is_built_once_and_the_program_loaded_once():
    registry, load = SlotRegistry(), Loader()
    assert not registry.has_program("job", 0)
    first = registry.entry(_address(0), load)
    assert registry.entry(_address(0), load) is first
    assert registry.entry(_address(1), load) is not first
    assert load.calls == 1
    assert registry.has_program("job", 0)


def test_subtasks_in_one_process_do_not_share_their_functions():
    registry, load = SlotRegistry(), Loader()
    functions = []
    for slot in range(2):
        built = registry.entry(_address(slot), load).slot
        assert isinstance(built, Slot)
        functions += [
            operator.function
            for subtask in built._subtasks.values()
            for operator in subtask.operators.values()
            if isinstance(operator, MapOperator)
        ]
    assert len(functions) == 2
    assert functions[0] is not functions[1]


def test_the_program_goes_with_the_last_slot():
    registry, load = SlotRegistry(), Loader()
    registry.entry(_address(0), load)
    registry.entry(_address(1), load)
    registry.forget(_address(0))
    assert registry.has_program("job", 0)
    assert not registry.is_empty()
    registry.forget(_address(1))
    assert not registry.has_program("job", 0)
    assert registry.is_empty()
    registry.forget(_address(1))


def test_attempts_are_kept_apart():
    registry, load = SlotRegistry(), Loader()
    first = registry.entry(_address(0), load)
    assert registry.entry(_address(0, attempt=1), load) is not first
    assert load.calls == 2
