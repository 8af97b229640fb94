"""Operator state when the parallelism changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.state.operator_state import OperatorState, Redistribution, redistribute

_ELEMENTS = st.lists(st.binary(max_size=2), max_size=5).map(tuple)


def _states(mode: Redistribution, lists: list[tuple[bytes, ...]]) -> list[dict[str, OperatorState]]:
    return [{"s": OperatorState(mode, elements, "[]")} for elements in lists]


def _lists(states: list[dict[str, OperatorState]]) -> list[tuple[bytes, ...]]:
    return [of_subtask["s"].elements for of_subtask in states]


@given(st.lists(_ELEMENTS, min_size=1, max_size=5), st.integers(1, 6))
def test_a_split_list_is_divided_evenly_in_its_order(
    lists: list[tuple[bytes, ...]], parallelism: int
) -> None:
    after = _lists(redistribute(_states(Redistribution.SPLIT, lists), parallelism))
    assert len(after) == parallelism
    assert [e for part in after for e in part] == [e for part in lists for e in part]
    if parallelism == len(lists):
        assert after == lists
    else:
        sizes = set(map(len, after))
        assert max(sizes) - min(sizes) <= 1


@given(
    st.lists(st.lists(_ELEMENTS, min_size=4, max_size=4), min_size=1, max_size=4),
    st.sampled_from([1, 2, 3, 5, 6]),
)
def test_the_lists_of_an_operator_are_balanced_together(
    subtasks: list[list[tuple[bytes, ...]]], parallelism: int
) -> None:
    """The facts of Flink's CheckpointCoordinatorTest#testPartitionableStateRepartitioning."""
    before = [
        {
            f"list {number}": OperatorState(Redistribution.SPLIT, elements, "[]")
            for number, elements in enumerate(lists)
        }
        for lists in subtasks
    ]
    after = redistribute(before, parallelism)
    for name in before[0]:
        found = sorted(e for of_subtask in after for e in of_subtask[name].elements)
        assert found == sorted(e for of_subtask in before for e in of_subtask[name].elements)
    if parallelism != len(before):
        loads = [sum(len(state.elements) for state in of.values()) for of in after]
        assert max(loads) - min(loads) <= 1


def test_three_lists_of_one_element_go_to_three_subtasks() -> None:
    lists = {name: OperatorState(Redistribution.SPLIT, (b"a",), "[]") for name in "xyz"}
    after = redistribute([lists], 3)
    assert [sum(len(state.elements) for state in of.values()) for of in after] == [1, 1, 1]
    # The lists stay balanced when the parallelism changes once more.
    again = redistribute(after, 2)
    assert sorted(sum(len(state.elements) for state in of.values()) for of in again) == [1, 2]


@given(st.lists(_ELEMENTS, min_size=1, max_size=5), st.integers(1, 6))
def test_a_union_list_goes_to_everyone(lists: list[tuple[bytes, ...]], parallelism: int) -> None:
    after = _lists(redistribute(_states(Redistribution.UNION, lists), parallelism))
    assert after == [tuple(e for part in lists for e in part)] * parallelism


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_broadcast_state_is_the_same_for_everyone(parallelism: int) -> None:
    before = _states(Redistribution.BROADCAST, [(b"a", b"b")] * 3)
    assert _lists(redistribute(before, parallelism)) == [(b"a", b"b")] * parallelism


def test_a_state_that_only_some_subtasks_have_is_found() -> None:
    state = OperatorState(Redistribution.SPLIT, (b"a", b"b"), "[]")
    for parallelism in (1, 2, 3):
        after = redistribute([{}, {"s": state}], parallelism)
        assert sorted(e for part in after for e in part["s"].elements) == [b"a", b"b"]


def test_no_state_stays_no_state() -> None:
    assert redistribute([{}, {}], 3) == [{}, {}, {}]
