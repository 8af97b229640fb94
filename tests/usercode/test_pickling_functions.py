"""Functions travel to the tasks as pickles."""

import pickle

from firesteel.datastream.functions import MapFunction


class Counter(MapFunction):
    def __init__(self) -> None:
        self.count = 3
        self.me = self

    def map(self, value: int) -> int:
        self.count += value
        return self.count


class Slotted(MapFunction):
    __slots__ = ("factor",)
    factor: int

    def map(self, value: int) -> int:
        return value * self.factor


class WithStateOfItsOwn(MapFunction):
    factor = 1

    def __getstate__(self) -> int:
        return 5

    def __setstate__(self, state: int) -> None:
        self.factor = state

    def map(self, value: int) -> int:
        return value * self.factor


def test_a_function_arrives_with_its_attributes_and_its_references_to_itself() -> None:
    arrived = pickle.loads(pickle.dumps(Counter()))
    assert arrived.map(4) == 7
    assert arrived.me is arrived


def test_slots_and_states_of_the_users_own_arrive_too() -> None:
    slotted = Slotted()
    slotted.factor = 2
    slotted.note = "kept"  # type: ignore[attr-defined]
    arrived = pickle.loads(pickle.dumps(slotted))
    assert (arrived.map(4), arrived.note) == (8, "kept")
    assert pickle.loads(pickle.dumps(WithStateOfItsOwn())).map(4) == 20
