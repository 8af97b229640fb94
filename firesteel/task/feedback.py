"""Records on their way from the tail of a loop to its head, as a segment between two epochs.

They are kept like the keyed state of the tail: lists under keys of its own key groups. So checkpoints,
savepoints and another parallelism are nothing new to them. Between two epochs of a job they keep
their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, count, groupby
from typing import Any

from firesteel.checkpoint.file_systems import FileSystemOptions
from firesteel.state.changelog import Segment, SegmentStore
from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.hashmap.keyed_state import HashMapKeyedState
from firesteel.state.key_groups import KeyGroupRange, key_group_of
from firesteel.state.segment_format import encode_changes
from firesteel.state.tables import TableDescription, TableKind
from firesteel.task.messages import OperatorHandle
from firesteel.task.restoring import restore_from_handle

VALUES, TIMESTAMPS = "feedback", "feedback timestamps"

_TABLES = {name: TableDescription(TableKind.LIST) for name in (VALUES, TIMESTAMPS)}
# Into so many lists records are dealt: enough for as many subtasks to get an equal share.
_MOST_LISTS = 128

Timestamps = list[int | None]


@lru_cache(maxsize=64)
def keys_of(key_groups: KeyGroupRange, max_parallelism: int) -> tuple[str, ...]:
    """Keys of different groups of a subtask, in the order of the groups."""
    wanted = min(key_groups.end - key_groups.start + 1, _MOST_LISTS)
    found: dict[int, str] = {}
    for number in count():
        group = key_group_of(str(number), max_parallelism)
        if group in key_groups:
            found.setdefault(group, str(number))
            if len(found) == wanted:
                break
    return tuple(found[group] for group in sorted(found))


def write_feedback(
    values: list[Any],
    timestamps: Timestamps | None,
    keys: Sequence[str],
    epoch: int,
    store: SegmentStore,
) -> tuple[Segment, ...]:
    if not values:
        return ()
    # Few records take keys that lie far apart: they shall not all move to the same subtask.
    lists = min(len(keys), len(values))
    chosen = [keys[(2 * number + 1) * len(keys) // (2 * lists)] for number in range(lists)]
    blocks = [_dealt(VALUES, chosen, values)]
    if timestamps is not None:
        blocks.append(_dealt(TIMESTAMPS, chosen, timestamps))
    return (store.write(encode_changes(blocks, _TABLES, None), epoch=epoch, full=True),)


def _dealt(table: str, keys: list[str], elements: list[Any]) -> Changes:
    lists = [elements[number :: len(keys)] for number in range(len(keys))]
    return Changes(
        table, ChangeKind.PUT, keys, list(chain.from_iterable(lists)), list(map(len, lists))
    )


def read_feedback(
    handle: OperatorHandle, store: SegmentStore, options: FileSystemOptions | None = None
) -> tuple[list[Any], Timestamps | None]:
    """What ``write_feedback`` wrote; after a change of the parallelism, this subtask's share."""
    tables: dict[str, list[list[Any]]] = {VALUES: [], TIMESTAMPS: []}
    backend = HashMapKeyedState()
    try:
        restore_from_handle(backend, handle, store, options)
        for entry in backend.entries():
            tables[entry.table].append(entry.value)
    finally:
        backend.close()
    values = _collected(tables[VALUES])
    return values, _collected(tables[TIMESTAMPS]) if tables[TIMESTAMPS] else None


def _collected(lists: list[list[Any]]) -> list[Any]:
    total, step = sum(map(len, lists)), len(lists)
    if any(len(one) != len(range(number, total, step)) for number, one in enumerate(lists)):
        # From several subtasks: there is no order to keep.
        return list(chain.from_iterable(lists))
    collected: list[Any] = [None] * total
    for number, one in enumerate(lists):
        collected[number::step] = one
    return collected


def uniform_batches(
    values: list[Any], timestamps: Timestamps | None
) -> Iterator[tuple[list[Any], list[int] | None]]:
    """Batches in which all records have a timestamp, or none has."""
    if timestamps is None:
        yield values, None
        return
    start = 0
    for is_missing, run in groupby(timestamps, key=lambda timestamp: timestamp is None):
        stamps = list(run)
        stop = start + len(stamps)
        known = None if is_missing else [stamp for stamp in stamps if stamp is not None]
        yield values[start:stop], known
        start = stop
