"""Iterations: the head of a loop, its tail, and the records that travel between them.

Spark knows no cycles. The tail keeps the records of an epoch, and the head reads them in the next
epoch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count, groupby
from typing import Any

from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.graph.operator_specs import IterationHeadSpec, IterationTailSpec
from firesteel.protocol.messages import Feedback, OperatorHandle, ReadBudget, SlotControl
from firesteel.state.changelog import Segment, SegmentStore
from firesteel.state.changes import ChangeKind, Changes
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.state.key_groups import KeyGroupRange, key_group_of
from firesteel.state.segment_format import encode_changes
from firesteel.state.table_descriptions import TableDescription, TableKind
from firesteel.task.exchange.input_gate import InputGate
from firesteel.task.head import GateHead, SubtaskHead
from firesteel.task.operators.base import Operator, OperatorContext
from firesteel.task.record_batch import RecordBatch
from firesteel.task.state.restoring import restore_from_handle
from firesteel.task.time.clock import ChunkPacer

VALUES, TIMESTAMPS = "feedback", "feedback timestamps"

_TABLES = {name: TableDescription(TableKind.LIST) for name in (VALUES, TIMESTAMPS)}
# Records are divided into this many lists, so that as many subtasks can get equal shares.
_MOST_LISTS = 128

Timestamps = list[int | None]
Records = tuple[list[Any], Timestamps | None]


@lru_cache(maxsize=64)
def keys_of(key_groups: KeyGroupRange, max_parallelism: int) -> tuple[str, ...]:
    """Keys of different key groups of a subtask, in the order of the groups."""
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
    # Few records get keys that lie far apart, so that rescaling spreads them.
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
) -> Records:
    """Read the records that ``write_feedback`` wrote, or this subtask's share after rescaling.

    After rescaling they may come from several subtasks, some with timestamps and some without.
    """
    lists: dict[str, dict[Any, list[Any]]] = {VALUES: {}, TIMESTAMPS: {}}
    backend = HashMapKeyedStateBackend()
    try:
        restore_from_handle(backend, handle, store, options)
        for entry in backend.entries():
            lists[entry.table][entry.key] = entry.value
    finally:
        backend.close()
    values, stamps = lists[VALUES], lists[TIMESTAMPS]
    collected = _collected([*values.values()])
    if not stamps:
        return collected, None
    return collected, _collected([stamps.get(key) or [None] * len(values[key]) for key in values])


def _collected(lists: list[list[Any]]) -> list[Any]:
    total, step = sum(map(len, lists)), len(lists)
    if any(len(one) != len(range(number, total, step)) for number, one in enumerate(lists)):
        # The lists come from several subtasks, so there is no order to keep.
        return list(chain.from_iterable(lists))
    collected: list[Any] = [None] * total
    for number, one in enumerate(lists):
        collected[number::step] = one
    return collected


def uniform_batches(values: list[Any], timestamps: Timestamps | None) -> Iterator[RecordBatch]:
    """Divide records into batches in which all have a timestamp, or none has."""
    if timestamps is None:
        yield RecordBatch(values)
        return
    start = 0
    for is_missing, run in groupby(timestamps, key=lambda timestamp: timestamp is None):
        stamps = list(run)
        stop = start + len(stamps)
        known = None if is_missing else [stamp for stamp in stamps if stamp is not None]
        yield RecordBatch(values[start:stop], known)
        start = stop


class IterationHeadOperator(Operator):
    """Emits its input and the feedback. Watermarks come from the input only."""

    def __init__(self, spec: IterationHeadSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self._feedback_only = spec.feedback_only
        self._pacer = ChunkPacer()
        # Tails in the same slot. Their records need not wait for the next epoch.
        self.tails: list[IterationTailOperator] = []
        # By tail: returns the share of this subtask in the records of all subtasks.
        self.shares: dict[int, Callable[[Records], Records]] = {}
        self.records_read = 0

    def create_head(self, gate: InputGate) -> SubtaskHead:
        return IterationHead(self, gate)

    def process(self, batch: RecordBatch) -> None:
        if not self._feedback_only:
            # Without keys: those of the input are not the key of the operators in the loop.
            self.output.emit(RecordBatch(batch.values, batch.timestamps))

    def read_epoch(self, carried: Iterable[Records], budget: ReadBudget) -> Iterator[None]:
        """Emit the feedback in chunks, and pause after each so that the slot can send rows.

        Records that reach tails in this slot go round again as long as the budget lasts. The rest
        is carried to the next epoch.
        """
        started = time.perf_counter()
        for records in carried:
            yield from self._emit(records)
        going = True
        while going:
            going = False
            for tail in self.tails:
                if time.perf_counter() - started >= budget.seconds:
                    return
                if self.records_read >= budget.records:
                    return
                records = tail.take()
                if records[0]:
                    going = True
                    yield from self._emit(records)

    def _emit(self, records: Records) -> Iterator[None]:
        pacer, emit = self._pacer, self.output.emit
        for batch in uniform_batches(*records):
            start = 0
            while start < len(batch):
                stop = start + pacer.records
                began = time.perf_counter()
                emit(batch.part(start, stop))
                emitted = min(stop, len(batch)) - start
                pacer.took(time.perf_counter() - began, emitted)
                self.records_read += emitted
                start = stop
                yield


class IterationHead(GateHead):
    """Takes the records of its gate, and reads the feedback of the loop."""

    reads = True

    def __init__(self, operator: IterationHeadOperator, gate: InputGate) -> None:
        super().__init__(gate)
        self._operator = operator
        self._feedback: Mapping[int, OperatorHandle] = {}
        # The gate stays open until the loop is over, even if all channels have ended.
        gate.held_open = True

    def begin_epoch(self) -> None:
        super().begin_epoch()
        self._operator.records_read = 0

    def apply(self, control: SlotControl) -> None:
        node_id = self._operator.context.node.id
        self._feedback = control.feedback.get(node_id, {})
        if node_id in control.ended_loops:
            self.gate.held_open = False

    def read_epoch(self, budget: ReadBudget, store: SegmentStore, *, drain: bool) -> Iterator[None]:
        feedback, self._feedback = self._feedback, {}
        carried = (self._read(tail, handle, store) for tail, handle in feedback.items())
        yield from self._operator.read_epoch(carried, budget)
        self.records_read = self._operator.records_read

    def _read(self, tail: int, handle: OperatorHandle, store: SegmentStore) -> Records:
        operator = self._operator
        records = read_feedback(handle, store, operator.context.subtask.file_systems)
        if handle.restored is not None and handle.restored.assignment.is_shared:
            return operator.shares[tail](records)
        return records


_log = logging.getLogger("firesteel")


class IterationTailOperator(Operator):
    """Keeps the records of an epoch. Watermarks end here, as in Flink."""

    def __init__(self, spec: IterationTailSpec, context: OperatorContext) -> None:
        super().__init__(context)
        self._values: list[Any] = []
        self._timestamps: Timestamps | None = None

    def restore_keyed_state(self, handle: OperatorHandle, store: SegmentStore) -> None:
        """The head of the loop reads what its tail has written."""

    def restore(self, whole: Any) -> None:
        """Drop the records of an attempt that broke off. The head restores the feedback."""
        self.take()

    def process(self, batch: RecordBatch) -> None:
        values, timestamps = batch.values, batch.timestamps
        if timestamps is not None or self._timestamps is not None:
            if self._timestamps is None:
                self._timestamps = [None] * len(self._values)
            self._timestamps += [None] * len(values) if timestamps is None else timestamps
        self._values += values

    @property
    def has_records(self) -> bool:
        return bool(self._values)

    def take(self) -> tuple[list[Any], Timestamps | None]:
        """Hand over the records, and forget them."""
        taken = self._values, self._timestamps
        self._values, self._timestamps = [], None
        return taken

    def report(self, epoch: int, store: SegmentStore, *, finished: bool) -> Feedback:
        values, timestamps = self.take()
        if finished and values:
            _log.warning(
                "'%s': the loop has ended. %d records that its operators emitted when they "
                "finished are dropped.",
                self.name,
                len(values),
            )
            return Feedback(0)
        node = self.context.node
        key_groups = KeyGroupRange.of_subtask(
            self.context.subtask.index, node.parallelism, node.max_parallelism
        )
        keys = keys_of(key_groups, node.max_parallelism)
        return Feedback(len(values), write_feedback(values, timestamps, keys, epoch, store))
