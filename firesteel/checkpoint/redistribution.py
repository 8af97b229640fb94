"""State moves to another number of subtasks: key groups, lists, splits, committables. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from firesteel.checkpoint.metadata import (
    KeyedStateFile,
    ListState,
    OperatorState,
    Redistribution,
)
from firesteel.checkpoint.payload import Payload
from firesteel.state.changelog import Segment
from firesteel.state.key_groups import KeyGroupRange

__all__ = [
    "KeyedPart",
    "distribute",
    "redistribute_committables",
    "redistribute_keyed_state",
    "redistribute_lists",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeyedPart:
    """Keyed state of one old subtask that a new one has to read: segments, or files of a savepoint.

    ``is_exact``: all of it is wanted. Else only the keys of the new subtask's key groups are.
    """

    segments: tuple[Segment, ...]
    files: tuple[KeyedStateFile, ...]
    is_exact: bool


def redistribute_keyed_state(
    operator: OperatorState, parallelism: int
) -> list[tuple[KeyedPart, ...]]:
    """For each new subtask, the old subtasks whose key groups it shares."""
    result: list[tuple[KeyedPart, ...]] = []
    for new_index in range(parallelism):
        wanted = KeyGroupRange.of_subtask(new_index, parallelism, operator.max_parallelism)
        parts = []
        for old_index, state in enumerate(operator.subtasks):
            held = KeyGroupRange.of_subtask(
                old_index, operator.parallelism, operator.max_parallelism
            )
            files = tuple(file for file in state.files if _overlap(file.key_groups, wanted))
            if (state.segments or files) and _overlap(held, wanted):
                parts.append(KeyedPart(state.segments, files, is_exact=_within(held, wanted)))
        result.append(tuple(parts))
    return result


def _overlap(one: KeyGroupRange, other: KeyGroupRange) -> bool:
    return one.start <= other.end and other.start <= one.end


def _within(inner: KeyGroupRange, outer: KeyGroupRange) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def redistribute_lists(operator: OperatorState, parallelism: int) -> list[tuple[ListState, ...]]:
    """For each new subtask, its list states by the rule of each."""
    result: list[list[ListState]] = [[] for _ in range(parallelism)]
    # Where a state's odd elements end, the next one's begin, so that no subtask gets all of them.
    first = 0
    for name in _names(operator):
        old = [_list_of(operator, index, name) for index in range(operator.parallelism)]
        rule = next(state.redistribution for state in old if state is not None)
        shares, first = _shares(old, rule, parallelism, first)
        for new_index, elements in enumerate(shares):
            if elements:
                result[new_index].append(ListState(name, rule, elements))
    return [tuple(states) for states in result]


def _shares(
    old: Sequence[ListState | None], rule: Redistribution, parallelism: int, first: int
) -> tuple[list[tuple[Payload, ...]], int]:
    elements = [() if state is None else state.elements for state in old]
    together = tuple(element for one in elements for element in one)
    if rule is Redistribution.UNION:
        return [together] * parallelism, first
    if rule is Redistribution.BROADCAST:
        # All subtasks had the same; one that was empty had not seen anything yet.
        present = [one for one in elements if one] or [()]
        return [present[index % len(present)] for index in range(parallelism)], first
    if len(old) == parallelism:
        return [*elements], first
    shares = distribute(together, parallelism, first)
    return [tuple(share) for share in shares], (first + len(together)) % parallelism


def distribute(elements: Sequence[T], parallelism: int, first: int = 0) -> list[list[T]]:
    """Runs of neighbors, as even as can be; odd ones go to the subtasks from ``first`` on.

    >>> distribute([1, 2, 3, 4, 5], 3)
    [[1, 2], [3, 4], [5]]
    >>> distribute([1, 2, 3, 4, 5], 3, first=2)
    [[3, 4], [5], [1, 2]]
    """
    each, odd = divmod(len(elements), parallelism)
    result: list[list[T]] = [[] for _ in range(parallelism)]
    start = 0
    for turn in range(parallelism):
        end = start + each + (turn < odd)
        result[(first + turn) % parallelism] = list(elements[start:end])
        start = end
    return result


def redistribute_committables(
    operator: OperatorState, parallelism: int
) -> list[tuple[Payload, ...]]:
    """Each is to be committed once, by whichever subtask."""
    old = [subtask.committables for subtask in operator.subtasks]
    if len(old) == parallelism:
        return old
    together = [one for committables in old for one in committables]
    return [tuple(share) for share in distribute(together, parallelism)]


def _names(operator: OperatorState) -> list[str]:
    return sorted({state.name for subtask in operator.subtasks for state in subtask.lists})


def _list_of(operator: OperatorState, index: int, name: str) -> ListState | None:
    found = [state for state in operator.subtasks[index].lists if state.name == name]
    return found[0] if found else None
