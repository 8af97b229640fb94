"""Redistribution of state to a different number of subtasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from firesteel.checkpoint.metadata import KeyedStateFile, OperatorMetadata
from firesteel.checkpoint.payload import Payload
from firesteel.state.changelog import Segment
from firesteel.state.key_groups import KeyGroupRange
from firesteel.state.operator_state import OperatorState, distribute, redistribute


class Sharing(Enum):
    """State of a rescaled operator that its key groups do not divide.

    ROUTED: a new subtask reads the state of all old ones, and takes its share.
    COPIES: all old subtasks have the same state, and each new one gets it.
    """

    ROUTED = "routed"
    COPIES = "copies"


@dataclass(frozen=True, slots=True)
class KeyedPart:
    """Keyed state of an old subtask that a new subtask reads: segments, or files of a savepoint.

    ``is_exact``: the new subtask takes all keys. Otherwise it takes those of its key groups.
    """

    segments: tuple[Segment, ...]
    files: tuple[KeyedStateFile, ...]
    is_exact: bool


def redistribute_keyed_state(
    operator: OperatorMetadata, parallelism: int
) -> list[tuple[KeyedPart, ...]]:
    """For each new subtask, the state of the old subtasks with common key groups."""
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


def shared_keyed_state(
    operator: OperatorMetadata, parallelism: int, sharing: Sharing
) -> list[tuple[KeyedPart, ...]]:
    """For each new subtask, the whole state of the old subtasks, or of the first of them."""
    subtasks = operator.subtasks[:1] if sharing is Sharing.COPIES else operator.subtasks
    parts = tuple(
        KeyedPart(state.segments, state.files, is_exact=True)
        for state in subtasks
        if state.segments or state.files
    )
    return [parts] * parallelism


def _overlap(one: KeyGroupRange, other: KeyGroupRange) -> bool:
    return one.start <= other.end and other.start <= one.end


def _within(inner: KeyGroupRange, outer: KeyGroupRange) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def redistribute_operator_state(
    operator: OperatorMetadata, parallelism: int
) -> list[dict[str, OperatorState]]:
    """For each new subtask, its operator states."""
    return redistribute([subtask.operator_state for subtask in operator.subtasks], parallelism)


def redistribute_payloads(
    old: Sequence[tuple[Payload, ...]], parallelism: int
) -> list[tuple[Payload, ...]]:
    """Splits, committables and writer states. With equal parallelism nothing moves."""
    if len(old) == parallelism:
        return [*old]
    together = [payload for of_subtask in old for payload in of_subtask]
    return [tuple(share) for share in distribute(together, parallelism)]


def redistribute_in_flight(
    operator: OperatorMetadata, parallelism: int
) -> list[tuple[tuple[Segment, ...], ...]]:
    """For each new subtask, the rows in flight of the old subtasks that it has to look at.

    With a new parallelism each subtask reads all rows, and takes its share.
    """
    rows = tuple(one.in_flight for one in operator.subtasks)
    if not any(rows):
        return [()] * parallelism
    if len(rows) == parallelism:
        return [(one,) for one in rows]
    return [rows] * parallelism
