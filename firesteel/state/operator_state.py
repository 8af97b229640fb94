"""Operator state when the parallelism changes. Elements stay bytes: nobody looks inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain


class Redistribution(Enum):
    """Who gets what after a restore."""

    SPLIT = "split"
    """All elements, divided evenly."""
    UNION = "union"
    """All elements, to everyone."""
    BROADCAST = "broadcast"
    """What one subtask had; all had the same."""


@dataclass(frozen=True, slots=True)
class OperatorState:
    """One named state of one subtask. ``description`` says in JSON what its elements are."""

    mode: Redistribution
    elements: tuple[bytes, ...]
    description: str


OperatorStates = Mapping[str, OperatorState]
"""By name."""


def redistribute(
    states: Sequence[OperatorStates], parallelism: int
) -> list[dict[str, OperatorState]]:
    """From the states of all subtasks before to those of all subtasks after a restore.

    The order of elements is kept. With the same parallelism, split lists stay where they were.
    """
    result: list[dict[str, OperatorState]] = [{} for _ in range(parallelism)]
    names = dict.fromkeys(chain.from_iterable(states))
    for name in names:
        before = [of_subtask.get(name) for of_subtask in states]
        for index, state in enumerate(_redistribute_one(before, parallelism)):
            result[index][name] = state
    return result


def _redistribute_one(
    before: Sequence[OperatorState | None], parallelism: int
) -> list[OperatorState]:
    known = [state for state in before if state is not None]
    first = known[0]
    if first.mode is Redistribution.BROADCAST:
        return [known[index % len(known)] for index in range(parallelism)]
    empty = replace(first, elements=())
    if first.mode is Redistribution.SPLIT and len(before) == parallelism:
        return [empty if state is None else state for state in before]
    elements = tuple(chain.from_iterable(state.elements for state in known))
    if first.mode is Redistribution.UNION:
        return [replace(first, elements=elements)] * parallelism
    return [replace(first, elements=part) for part in _evenly(elements, parallelism)]


def _evenly(elements: tuple[bytes, ...], parts: int) -> list[tuple[bytes, ...]]:
    size, rest = divmod(len(elements), parts)
    divided = []
    start = 0
    for part in range(parts):
        end = start + size + (part < rest)
        divided.append(elements[start:end])
        start = end
    return divided
