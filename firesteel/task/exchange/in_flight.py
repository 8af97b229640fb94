"""Rows in flight: the rows that an unaligned checkpoint contains, and their way back.

The barrier of an unaligned checkpoint overtakes rows that wait before a slow subtask. The subtask
writes them into the checkpoint. A restored subtask processes them before all other rows. If its
parallelism has changed, it takes its share of the rows of all subtasks.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from firesteel.errors import FiresteelError
from firesteel.graph.partitioning import ShipStrategy, source_subtasks
from firesteel.graph.stream_graph import StreamEdge, StreamNode
from firesteel.protocol.messages import InFlight
from firesteel.protocol.rows import COUNTED, DATA, WATERMARK, BufferRow
from firesteel.state.changelog import Segment, SegmentStore
from firesteel.state.key_groups import KeyRouter
from firesteel.task.codegen.key_loops import KeySelection
from firesteel.task.column_batch import ColumnBatch, ColumnKeys
from firesteel.task.exchange.buffers import BufferEncoder, decode_buffer
from firesteel.task.exchange.keys import key_function, route_keys
from firesteel.task.record_batch import RecordBatch

# A checkpoint may contain many rows, so they are written in segments of about this size.
_SEGMENT_BYTES = 4 << 20
# Other rows are sent again by the restored subtask upstream.
_KINDS = (DATA, WATERMARK)
# Edges whose barriers may overtake, as in Flink. The records of the other ones cannot be divided
# again after rescaling: pointwise edges keep an order, the sides of a broadcast must stay equal,
# and a partitioner of the user may give a different answer the next time.
_OVERTAKABLE = frozenset(
    {ShipStrategy.HASH, ShipStrategy.REBALANCE, ShipStrategy.SHUFFLE, ShipStrategy.GLOBAL}
)


class InFlightRowsError(FiresteelError, ValueError):
    """The rows in flight of a checkpoint do not fit the program."""


def may_overtake(edge: StreamEdge) -> bool:
    """Return whether barriers may overtake rows of this edge."""
    return edge.partitioning.strategy in _OVERTAKABLE


@dataclass(frozen=True, slots=True)
class _Input:
    """An edge into the subtask, and the upstream subtasks that send to it."""

    edge: StreamEdge
    channels: range
    selection: KeySelection | ColumnKeys | None

    @property
    def strategy(self) -> ShipStrategy:
        return self.edge.partitioning.strategy


class InFlightRows:
    """Writes and restores the rows in flight of one subtask."""

    def __init__(self, name: str, subtask: int, parallelism: int) -> None:
        self._name = name
        self._subtask = subtask
        self._parallelism = parallelism
        # The position of an edge identifies it in a checkpoint, because ids may change.
        self._inputs: list[_Input] = []
        self._target: StreamNode | None = None

    def add_edge(
        self,
        edge: StreamEdge,
        source: StreamNode,
        target: StreamNode,
        selection: KeySelection | ColumnKeys | None,
    ) -> None:
        """Add an edge into the subtask, in the order of the ids."""
        channels = source_subtasks(
            edge.partitioning.strategy, self._subtask, source.parallelism, target.parallelism
        )
        self._target = target
        self._inputs.append(_Input(edge, channels, selection))

    def written(
        self, rows: Iterable[BufferRow], store: SegmentStore, epoch: int
    ) -> tuple[Segment, ...]:
        """Write the rows of the subtask that wait."""
        position = {one.edge.id: index for index, one in enumerate(self._inputs)}
        channels = tuple(len(one.channels) for one in self._inputs)
        segments: list[Segment] = []
        chunk: list[tuple[int, int, int, bytes]] = []
        size = 0

        def write() -> None:
            inline = sum(one.size for one in segments if one.path is None)
            payload = pickle.dumps((channels, chunk), pickle.HIGHEST_PROTOCOL)
            segments.append(store.write([payload], epoch=epoch, full=True, inline_bytes=inline))

        for row in rows:
            if row.kind in _KINDS:
                chunk.append((position[row.edge], row.channel, row.kind, row.payload))
                size += len(row.payload)
                if size >= _SEGMENT_BYTES:
                    write()
                    chunk, size = [], 0
        if chunk:
            write()
        return tuple(segments)

    def restored(self, in_flight: InFlight, store: SegmentStore) -> list[BufferRow]:
        """Return the rows of a checkpoint that this subtask has to process first."""
        found: list[BufferRow] = []
        for earlier, segments in enumerate(in_flight.by_subtask):
            for segment in segments:
                channels, rows = pickle.loads(store.read(segment))
                self._check(channels, len(self._inputs))
                for position, channel, kind, payload in rows:
                    one = self._inputs[position]
                    row = BufferRow(self._subtask, one.edge.id, channel, COUNTED, kind, payload)
                    is_same = len(one.channels) == channels[position]
                    if not in_flight.is_rescaled and is_same:
                        found.append(row)
                    elif kind == DATA:
                        # Watermarks of channels that are divided in a new way mean nothing.
                        row = row._replace(channel=one.channels[channel % len(one.channels)])
                        found += self._share(one, row, earlier, in_flight)
        return found

    def restored_in_chain(self, in_flight: InFlight, store: SegmentStore) -> list[RecordBatch]:
        """Return records on their way to an operator that follows others of its chain now."""
        found: list[RecordBatch] = []
        for earlier, segments in enumerate(in_flight.by_subtask):
            for segment in segments:
                channels, rows = pickle.loads(store.read(segment))
                self._check(channels, inputs=1)
                if not in_flight.is_rescaled or earlier % self._parallelism == self._subtask:
                    found += [decode_buffer(row[-1]) for row in rows if row[-2] == DATA]
        return found

    def _check(self, channels: tuple[int, ...], inputs: int) -> None:
        if len(channels) != inputs:
            raise InFlightRowsError(
                f"the checkpoint contains records on their way to '{self._name}', which had "
                f"{len(channels)} inputs and now has {inputs}. Restore the program as it "
                "was, and take a savepoint: it contains no records on their way"
            )

    def _share(
        self, one: _Input, row: BufferRow, earlier: int, in_flight: InFlight
    ) -> Iterator[BufferRow]:
        assert self._target is not None
        if not in_flight.is_rescaled:
            yield row
        elif one.strategy is ShipStrategy.HASH:
            yield from self._of_own_keys(one, row, self._target)
        elif one.strategy is ShipStrategy.GLOBAL:
            if self._subtask == 0:
                yield row
        elif earlier % self._parallelism == self._subtask:
            yield row

    def _of_own_keys(self, one: _Input, row: BufferRow, target: StreamNode) -> Iterator[BufferRow]:
        """Yield a row with the records whose keys belong to this subtask."""
        batch = decode_buffer(row.payload, one.selection)
        sent, keys = batch.sent_keys, batch.keys
        assert keys is not None
        router = KeyRouter(target.parallelism, target.max_parallelism)
        select = key_function(one.edge)
        _, targets = route_keys(router, f"key_by before {self._name}", select, batch.values, keys)
        own = [index for index, found in enumerate(targets) if found == self._subtask]
        if not own:
            return
        if isinstance(batch, ColumnBatch):
            payload, _ = BufferEncoder().encode(batch.taken(pa.array(own)))
            yield row._replace(payload=payload)
            return
        stamps = batch.timestamps
        share = RecordBatch(
            [batch.values[index] for index in own],
            None if stamps is None else [stamps[index] for index in own],
            None if sent is None else [sent[index] for index in own],
        )
        payload, _ = BufferEncoder().encode(share)
        yield row._replace(payload=payload)
