"""Operator state, and its redistribution when the parallelism changes. Elements stay encoded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain
from typing import TypeVar

from firesteel.common.typeinfo import TypeInformation
from firesteel.state.type_descriptions import describe_type, type_of

_T = TypeVar("_T")


class Redistribution(Enum):
    """The distribution of the elements among the subtasks of a restored operator."""

    SPLIT = "split"
    """Each subtask gets an even share of all elements."""
    UNION = "union"
    """Each subtask gets all elements."""
    BROADCAST = "broadcast"
    """Each subtask gets the state of one former subtask. All former subtasks had the same state."""


@dataclass(frozen=True, slots=True)
class OperatorState:
    """One named state of one subtask. ``description`` is the result of ``describe_elements``."""

    mode: Redistribution
    elements: tuple[bytes, ...]
    description: str


OperatorStates = Mapping[str, OperatorState]
"""Operator states by name."""


def describe_elements(mode: Redistribution, *types: TypeInformation) -> str:
    """Types of the elements, or of the keys and values of a broadcast state, as JSON.

    >>> from firesteel.common import Types
    >>> describe_elements(Redistribution.UNION, Types.LONG())
    '["union", "LONG"]'
    """
    return json.dumps([mode.value, *map(describe_type, types)])


def element_types(description: str) -> list[TypeInformation]:
    """The types in a description from ``describe_elements``."""
    return [type_of(one) for one in json.loads(description)[1:]]


def redistribute(
    states: Sequence[OperatorStates], parallelism: int
) -> list[dict[str, OperatorState]]:
    """The states of all new subtasks, from the states of all former subtasks.

    Elements keep their order. With the same parallelism, each subtask keeps its split lists.
    """
    result: list[dict[str, OperatorState]] = [{} for _ in range(parallelism)]
    names = dict.fromkeys(chain.from_iterable(states))
    # As in Flink, a list begins at the subtask after the last odd element of the list before it.
    # Several short lists then do not all go to the first subtask.
    start = 0
    for name in names:
        before = [of_subtask.get(name) for of_subtask in states]
        after = _redistribute_one(before, parallelism, start)
        for of_subtask, state in zip(result, after, strict=True):
            of_subtask[name] = state
        if after[0].mode is Redistribution.SPLIT:
            start += sum(len(state.elements) for state in after)
    return result


def _redistribute_one(
    before: Sequence[OperatorState | None], parallelism: int, start: int
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
    shares = distribute(elements, parallelism, start)
    return [replace(first, elements=tuple(share)) for share in shares]


def distribute(elements: Sequence[_T], parallelism: int, start: int = 0) -> list[list[_T]]:
    """Divide elements evenly into runs of neighbors. The first run goes to part ``start``.

    >>> distribute([1, 2, 3, 4, 5], 3)
    [[1, 2], [3, 4], [5]]
    >>> distribute([1, 2, 3, 4, 5], 3, start=2)
    [[3, 4], [5], [1, 2]]
    """
    each, odd = divmod(len(elements), parallelism)
    result: list[list[_T]] = [[]] * parallelism
    position = 0
    for turn in range(parallelism):
        end = position + each + (turn < odd)
        result[(start + turn) % parallelism] = list(elements[position:end])
        position = end
    return result
