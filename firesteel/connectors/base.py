"""Interfaces of sources and sinks: splits and readers, writers and committers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import pyarrow as pa

from firesteel.common.configuration import Configuration
from firesteel.stability import public_evolving

__all__ = [
    "Boundedness",
    "Committer",
    "DeliveryGuarantee",
    "ReaderContext",
    "Sink",
    "SinkWriter",
    "Source",
    "SourceReader",
    "SourceSplit",
    "SplitEnumerator",
    "WriteContext",
    "WriterContext",
]


class DeliveryGuarantee(Enum):
    """The guarantee of a sink for each record after a failure.

    EXACTLY_ONCE writes a record once. AT_LEAST_ONCE may repeat it. NONE may lose or repeat it.

    >>> from firesteel.datastream.connectors.base import DeliveryGuarantee
    >>> DeliveryGuarantee.EXACTLY_ONCE.name
    'EXACTLY_ONCE'
    """

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


@public_evolving
class Boundedness(Enum):
    """The answer of a source to the question if it ends. Not in PyFlink.

    >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
    >>> NumberSequenceSource(1, 3).get_boundedness()
    <Boundedness.BOUNDED: 'BOUNDED'>
    """

    BOUNDED = "BOUNDED"
    CONTINUOUS_UNBOUNDED = "CONTINUOUS_UNBOUNDED"


@public_evolving
@dataclass(frozen=True, slots=True)
class SourceSplit:
    """A part of a source that one reader reads. Not in PyFlink.

    Checkpoints keep splits, so all fields are JSON.

    Args:
        split_id: The name of the split. It is unique in its source.
        properties: The description of the data. It never changes.
        position: The progress of the reader, or None before it starts.

    >>> from firesteel.datastream.connectors.base import SourceSplit
    >>> split = SourceSplit("orders-0", {"file": "orders.csv"})
    >>> split.at(1024).position
    1024
    """

    split_id: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    position: Any = None

    def at(self, position: Any) -> SourceSplit:
        """Return this split at a different position.

        Args:
            position: The progress of the reader.
        """
        return replace(self, position=position)


@public_evolving
class SplitEnumerator(ABC):
    """Finds the splits of a source. It runs in the driver, in a thread of its own. Not in PyFlink.

    All its methods are called in that thread. The job continues while one of them waits.

    >>> from firesteel.datastream.connectors.base import SourceSplit, SplitEnumerator
    >>> class DayEnumerator(SplitEnumerator):
    ...     def __init__(self, days, found=0):
    ...         self._days, self._found = days, found
    ...     def discover_splits(self):
    ...         new = self._days[self._found :]
    ...         self._found = len(self._days)
    ...         return [SourceSplit(day) for day in new]
    ...     def is_complete(self):
    ...         return False
    ...     def has_pending(self, splits):
    ...         return bool(splits)
    ...     def next_discovery_delay(self):
    ...         return 60.0
    ...     def snapshot_state(self):
    ...         return self._found
    ...     def checkpoint_complete(self, splits):
    ...         print("still to read:", [split.split_id for split in splits])
    ...     def close(self):
    ...         print("closed")
    >>> days = DayEnumerator(["2024-03-09"])
    >>> days.discover_splits(), days.discover_splits()
    ([SourceSplit(split_id='2024-03-09', properties={}, position=None)], [])
    """

    @abstractmethod
    def discover_splits(self) -> Sequence[SourceSplit]:
        """Return the splits that were found since the last call."""

    def all_splits_read(self) -> None:  # noqa: B027 - optional
        """Learn that the readers have read all splits that were found so far.

        Called before ``discover_splits``, in each call while this is so. A HybridSource switches to
        its next source then.

        >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
        >>> NumberSequenceSource(1, 3).create_enumerator(1).all_splits_read()
        """

    def is_complete(self) -> bool:
        """Return True if no more splits can be found. A bounded source ends after these."""
        return True

    def has_pending(self, splits: Sequence[SourceSplit]) -> bool | None:
        """Return True if splits have data to read now, and None if this is unknown.

        Args:
            splits: Unfinished splits, at their positions.
        """
        return None

    def snapshot_state(self) -> Any:
        """Return JSON from which ``Source.create_enumerator`` can continue.

        Called after each discovery. A checkpoint keeps the last result.
        """
        return None

    def next_discovery_delay(self) -> float:
        """Return the seconds until the next call of ``discover_splits``, while not complete."""
        return 1.0

    def checkpoint_complete(self, splits: Sequence[SourceSplit]) -> None:  # noqa: B027 - optional
        """Learn that a checkpoint is complete.

        Args:
            splits: The unfinished splits of the checkpoint, at their positions. Splits that were
                found before it and are missing here have been read to the end.
        """

    def close(self) -> None:  # noqa: B027 - optional
        """Release the resources of ``discover_splits``."""


@public_evolving
@dataclass(frozen=True, slots=True)
class ReaderContext:
    """The place of a reader in its job. Not in PyFlink.

    Args:
        subtask_index: The number of the subtask, from 0.
        parallelism: The number of subtasks.

    >>> from firesteel.datastream.connectors.base import ReaderContext
    >>> ReaderContext(subtask_index=0, parallelism=2)
    ReaderContext(subtask_index=0, parallelism=2)
    """

    subtask_index: int
    parallelism: int


@public_evolving
class SourceReader(ABC):
    """Reads the splits of a subtask, from their positions. It runs in a slot. Not in PyFlink.

    >>> from firesteel.datastream.connectors.base import SourceReader, SourceSplit
    >>> class CountdownReader(SourceReader):
    ...     def __init__(self):
    ...         self._splits = []
    ...     def add_splits(self, splits):
    ...         self._splits.extend(splits)
    ...     def read(self, limit):
    ...         if not self._splits:
    ...             return []
    ...         split = self._splits.pop(0)
    ...         start = split.properties["from"] if split.position is None else split.position
    ...         end = max(0, start - limit)
    ...         if end > 0:
    ...             self._splits.insert(0, split.at(end))
    ...         return list(range(start, end, -1))
    ...     def snapshot_splits(self):
    ...         return self._splits
    >>> reader = CountdownReader()
    >>> reader.add_splits([SourceSplit("countdown", {"from": 5})])
    >>> reader.read(3), reader.snapshot_splits()[0].position, reader.read(3), reader.read(3)
    ([5, 4, 3], 2, [2, 1], [])
    """

    @abstractmethod
    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        """Take over new or restored splits.

        Args:
            splits: The splits, at their positions.
        """

    @abstractmethod
    def read(self, limit: int) -> list[Any] | range | pa.RecordBatch:
        """Return the next records without waiting long.

        Args:
            limit: The maximum number of records.

        Returns:
            A list or a range, or a ``pyarrow.RecordBatch`` if the type of the source is of
            primitives. An empty one means that there is nothing to read now.
        """

    @abstractmethod
    def snapshot_splits(self) -> list[SourceSplit]:
        """Return the unfinished splits at their present positions.

        The positions are after all records that ``read`` has returned.
        """

    def next_read_delay(self) -> float:
        """Return the seconds until the next call of ``read``, after it returned nothing.

        >>> from firesteel.datastream.connectors.base import ReaderContext
        >>> from firesteel.testing import Pause, ScriptedSource
        >>> source = ScriptedSource([Pause(0.5)])
        >>> reader = source.create_reader(ReaderContext(0, 1))
        >>> reader.add_splits(source.create_enumerator(1).discover_splits())
        >>> reader.read(10), reader.next_read_delay() > 0
        ([], True)
        """
        return 0.1

    def timestamps(self) -> list[int] | None:
        """Return the event timestamps of the last ``read``, in milliseconds.

        Returns:
            A timestamp per record, or None if the source has none.

        >>> from firesteel.datastream.connectors.base import ReaderContext
        >>> from firesteel.testing import ScriptedSource, Timed
        >>> source = ScriptedSource([Timed("a", 1000), Timed("b", 2000)])
        >>> reader = source.create_reader(ReaderContext(0, 1))
        >>> reader.add_splits(source.create_enumerator(1).discover_splits())
        >>> reader.read(10), reader.timestamps()
        (['a', 'b'], [1000, 2000])
        """
        return None

    def current_split(self) -> str | None:
        """Return the split of all records of the last ``read``, or None if they may be mixed.

        Each split that is named here has a watermark of its own. All others share one.

        >>> from firesteel.datastream.connectors.base import ReaderContext
        >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
        >>> source = NumberSequenceSource(1, 3)
        >>> reader = source.create_reader(ReaderContext(0, 1))
        >>> reader.add_splits(source.create_enumerator(1).discover_splits())
        >>> list(reader.read(10)), reader.current_split()
        ([1, 2, 3], '0')
        """
        return None

    def names_splits(self) -> bool:
        """Return True if ``current_split`` names splits. By default, if it is overridden.

        >>> from firesteel.datastream.connectors.base import ReaderContext
        >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
        >>> NumberSequenceSource(1, 3).create_reader(ReaderContext(0, 1)).names_splits()
        True
        """
        return type(self).current_split is not SourceReader.current_split

    def broken_records(self) -> list[Any]:
        """Return the records that ``read`` could not make sense of since the last call.

        The source counts them in ``numRecordsInErrors`` and sends them to the side output of
        ``Source.broken_records_tag``. Positions of ``snapshot_splits`` are after them.

        >>> from firesteel.datastream.connectors.base import ReaderContext
        >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
        >>> NumberSequenceSource(1, 3).create_reader(ReaderContext(0, 1)).broken_records()
        []
        """
        return []

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Stop returning records of some splits, or start again.

        Override it together with ``current_split`` in sources for ``with_watermark_alignment``:
        splits that are far ahead wait while the others are read. Without it, the reader waits as a
        whole.

        Args:
            splits_to_pause: The ids of splits to pause. Some may have ended.
            splits_to_resume: The ids of splits to resume. Some may have ended.

        >>> from firesteel.datastream.connectors.base import SourceReader
        >>> class PausableReader(SourceReader):
        ...     paused = frozenset()
        ...     def add_splits(self, splits):
        ...         self._splits = list(splits)
        ...     def read(self, limit):
        ...         ids = [split.split_id for split in self._splits]
        ...         return [split_id for split_id in ids if split_id not in self.paused]
        ...     def snapshot_splits(self):
        ...         return self._splits
        ...     def pause_or_resume_splits(self, splits_to_pause, splits_to_resume):
        ...         self.paused = self.paused.union(splits_to_pause).difference(splits_to_resume)
        >>> reader = PausableReader()
        >>> reader.add_splits([SourceSplit("a"), SourceSplit("b")])
        >>> reader.pause_or_resume_splits(["a"], [])
        >>> reader.read(10)
        ['b']
        """
        raise NotImplementedError(
            f"{type(self).__name__} cannot pause single splits. Implement pause_or_resume_splits."
        )

    def begin_checkpoint(self, checkpoint_id: int) -> None:  # noqa: B027 - optional
        """Learn that the next ``snapshot_splits`` belongs to a checkpoint or to a savepoint.

        Args:
            checkpoint_id: The number of the checkpoint or savepoint.

        >>> from firesteel.datastream.connectors.base import SourceReader
        >>> class Acknowledging(SourceReader):
        ...     def __init__(self):
        ...         self.position, self.contained = 0, {}
        ...     def add_splits(self, splits):
        ...         self.splits = list(splits)
        ...     def read(self, limit):
        ...         return []
        ...     def snapshot_splits(self):
        ...         return self.splits
        ...     def begin_checkpoint(self, checkpoint_id):
        ...         self.contained[checkpoint_id] = self.position
        ...     def notify_checkpoint_complete(self, checkpoint_id):
        ...         print("the server may forget everything before", self.contained.pop(checkpoint_id))
        >>> reader = Acknowledging()
        >>> reader.begin_checkpoint(1)
        >>> reader.notify_checkpoint_complete(1)
        the server may forget everything before 0
        """

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:  # noqa: B027 - optional
        """Learn that a checkpoint is complete, so that its positions are safe.

        The reader may not learn of each one: a later checkpoint includes the earlier ones. It never
        learns of a savepoint.

        Args:
            checkpoint_id: The number of the checkpoint.

        >>> from firesteel.datastream.connectors.base import ReaderContext
        >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
        >>> reader = NumberSequenceSource(1, 3).create_reader(ReaderContext(0, 1))
        >>> reader.notify_checkpoint_complete(1)
        """

    def close(self) -> None:  # noqa: B027 - optional
        """Release files and connections.

        >>> from firesteel.datastream.connectors.base import ReaderContext
        >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
        >>> NumberSequenceSource(1, 3).create_reader(ReaderContext(0, 1)).close()
        """


class Source(ABC):
    """A source for ``env.from_source()``. Derive from it to write your own.

    The source is pickled and sent to the slots, so it holds parameters only.

    >>> from firesteel.datastream.connectors.base import Boundedness, Source
    >>> from firesteel.datastream.connectors.base import SourceReader, SourceSplit, SplitEnumerator
    >>> class OneSplit(SplitEnumerator):
    ...     def __init__(self, start, found):
    ...         self._start, self._found = start, found
    ...     def discover_splits(self):
    ...         splits = [] if self._found else [SourceSplit("countdown", {"from": self._start})]
    ...         self._found = True
    ...         return splits
    ...     def snapshot_state(self):
    ...         return self._found
    >>> class CountdownReader(SourceReader):
    ...     def __init__(self):
    ...         self._splits = []
    ...     def add_splits(self, splits):
    ...         self._splits.extend(splits)
    ...     def read(self, limit):
    ...         if not self._splits:
    ...             return []
    ...         return list(range(self._splits.pop().properties["from"], 0, -1))
    ...     def snapshot_splits(self):
    ...         return self._splits
    >>> class Countdown(Source):
    ...     def __init__(self, start):
    ...         self._start = start
    ...     def get_boundedness(self):
    ...         return Boundedness.BOUNDED
    ...     def create_enumerator(self, parallelism, state=None):
    ...         return OneSplit(self._start, bool(state))
    ...     def create_reader(self, context):
    ...         return CountdownReader()
    ...     def get_produced_type(self):
    ...         return Types.LONG()
    >>> stream = env.from_source(Countdown(3), WatermarkStrategy.no_watermarks(), "countdown")
    >>> list(stream.execute_and_collect())
    [3, 2, 1]
    """

    #: True if reading again from a position returns the same records. A source without this
    #: property, such as a socket, loses or repeats records after a failure.
    replayable: bool = True

    #: The order in which a reader reads its splits. True is side by side: all splits are assigned
    #: as soon as they are found. False is one after the other: a reader that has read its splits
    #: gets the next ones. None is unknown: splits are assigned as with False if the source is
    #: bounded, and as with True if it is not, because its splits may never end.
    side_by_side: bool | None = None

    #: True if splits are found in the order of their event time. By default the order is unknown:
    #: the watermark does not advance while a split waits to be read, because the split may contain
    #: the oldest records. This applies to readers whose ``SourceReader.current_split`` returns names.
    in_time_order: bool = False

    #: True if ``env.add_source`` accepts the source, as PyFlink's does.
    is_source_function: bool = False

    #: True if readers return a ``pyarrow.RecordBatch``. ``env.explain()`` shows it.
    gives_columns: bool = False

    #: The id of the OutputTag for the records of ``SourceReader.broken_records``. Without it they are
    #: counted and dropped.
    broken_records_tag: str | None = None

    @abstractmethod
    @public_evolving
    def get_boundedness(self) -> Boundedness:
        """Return BOUNDED if the source ends. Not in PyFlink."""

    @abstractmethod
    @public_evolving
    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create the enumerator, which runs in the driver. Not in PyFlink.

        Args:
            parallelism: The number of readers.
            state: The result of the enumerator's ``snapshot_state``, or None for a new job.
        """

    @abstractmethod
    @public_evolving
    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create the reader of a subtask. Not in PyFlink.

        Args:
            context: The place of the reader in the job.
        """

    @public_evolving
    def with_configuration(self, configuration: Configuration) -> Source:
        """Return the source for a job with this configuration. Not in PyFlink.

        Firesteel calls it when a job is submitted. Override it if the source needs settings, for example the address of a store:

        >>> from firesteel.common import Configuration
        >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
        >>> class UpToLimit(NumberSequenceSource):
        ...     def with_configuration(self, configuration):
        ...         return NumberSequenceSource(1, configuration.get_integer("limit", 10))
        >>> UpToLimit(1, 1).with_configuration(Configuration.from_dict({"limit": "3"}))
        NumberSequenceSource(1, 3)
        """
        return self

    @public_evolving
    def get_produced_type(self) -> Any:
        """Return the type of the records. None means any Python object. Not in PyFlink."""
        return None


@public_evolving
@dataclass(frozen=True, slots=True)
class WriterContext:
    """The place of a writer in its job. Not in PyFlink.

    Args:
        subtask_index: The number of the subtask, from 0.
        parallelism: The number of subtasks.
        job_id: The id of the job. A restart keeps it, so it makes names of files unique.
        attempt: The number of restarts of the job so far.
        abandoned: Results of ``snapshot_state`` and ``prepare_commit`` of failed attempts. No
            checkpoint and no savepoint after the restored one contains them, so the writer may
            remove everything that they name and that its own state does not name.
        checkpointed: True if the job takes checkpoints. Only they and the end of the input call
            ``prepare_commit`` then. Otherwise each epoch does.

    >>> from firesteel.datastream.connectors.base import WriterContext
    >>> WriterContext(subtask_index=0, parallelism=1, job_id="a1b2").job_id
    'a1b2'
    """

    subtask_index: int
    parallelism: int
    job_id: str
    attempt: int = 0
    abandoned: tuple[Any, ...] = ()
    checkpointed: bool = False


@public_evolving
@dataclass(slots=True)
class WriteContext:
    """Times at which a writer or a sink function receives a record. Not in PyFlink.

    >>> from firesteel.datastream.connectors.base import Sink, SinkWriter
    >>> class ShowTime(SinkWriter):
    ...     def write(self, value, context):
    ...         print(value, context.timestamp(), context.current_processing_time())
    ...         print(context.current_watermark() < context.timestamp())
    >>> class TimeSink(Sink):
    ...     def create_writer(self, context, state=None):
    ...         return ShowTime()
    >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
    ...     lambda value, timestamp: value * 1000
    ... )
    >>> stream = env.from_collection([5]).assign_timestamps_and_watermarks(strategy)
    >>> sink = stream.sink_to(TimeSink())
    >>> result = env.execute()
    5 5000 0
    True
    """

    record_timestamp: int | None = None
    watermark: int = -(2**63)
    processing_time: int = 0

    def timestamp(self) -> int | None:
        """Return the event timestamp of the record in milliseconds, or None if it has none."""
        return self.record_timestamp

    def current_watermark(self) -> int:
        """Return the present watermark in milliseconds."""
        return self.watermark

    def current_processing_time(self) -> int:
        """Return the present processing time in milliseconds."""
        return self.processing_time


@public_evolving
class SinkWriter(ABC):
    """Writes the records of a subtask. It runs in a slot, as long as the job. Not in PyFlink.

    A writer either writes each record at once, or returns committables from ``prepare_commit``. A
    Committer makes them visible when their checkpoint is complete. ``Sink`` shows a program.

    >>> from firesteel.datastream.connectors.base import SinkWriter, WriteContext
    >>> class BufferedWriter(SinkWriter):
    ...     def __init__(self):
    ...         self._buffer = []
    ...     def write(self, value, context):
    ...         self._buffer.append(value)
    ...     def flush(self, end_of_input):
    ...         print("flush", self._buffer)
    ...         self._buffer = []
    ...     def begin_checkpoint(self, checkpoint_id):
    ...         print("checkpoint", checkpoint_id)
    ...     def notify_checkpoint_complete(self, checkpoint_id):
    ...         print("complete", checkpoint_id)
    ...     def notify_checkpoint_aborted(self, checkpoint_id):
    ...         print("aborted", checkpoint_id)
    ...     def close(self):
    ...         print("closed")
    >>> writer = BufferedWriter()
    >>> writer.write_batch(["a", "b"], None, WriteContext())
    >>> writer.flush(end_of_input=False)
    flush ['a', 'b']
    """

    @abstractmethod
    def write(self, value: Any, context: WriteContext) -> None:
        """Write one record.

        Args:
            value: The record.
            context: The times of the record.
        """

    def write_batch(
        self, values: list[Any], timestamps: list[int] | None, context: WriteContext
    ) -> None:
        """Write records. Override it if a batch can be written faster than record by record.

        Args:
            values: The records.
            timestamps: Their event timestamps in milliseconds, or None if they have none.
            context: The times of the records.
        """
        if timestamps is None:
            context.record_timestamp = None
            for value in values:
                self.write(value, context)
            return
        for value, timestamp in zip(values, timestamps, strict=True):
            context.record_timestamp = timestamp
            self.write(value, context)

    def flush(self, end_of_input: bool) -> None:  # noqa: B027 - optional
        """Write all buffered records. Called at the end of each epoch.

        Args:
            end_of_input: True if no more records follow.
        """

    def next_flush_delay(self) -> float | None:
        """Return the seconds until ``flush`` is necessary.

        None lets it wait for the next record. Asked at the end of each epoch. An epoch runs after
        this time, with or without records.

        >>> from firesteel.datastream.connectors.base import SinkWriter
        >>> class TimedWriter(SinkWriter):
        ...     def write(self, value, context):
        ...         pass
        ...     def next_flush_delay(self):
        ...         return 5.0
        >>> TimedWriter().next_flush_delay()
        5.0
        """
        return None

    def prepare_commit(self, end_of_input: bool) -> list[Any]:
        """Return JSON that identifies the records since the last call, for the Committer.

        Called at a checkpoint and at the end of the input, before ``snapshot_state``. A snapshot no
        longer includes the data of a committable.

        Args:
            end_of_input: True if no more records follow.

        >>> from firesteel.testing import ListSink
        >>> from firesteel.datastream.connectors.base import WriteContext, WriterContext
        >>> sink = ListSink()
        >>> writer = sink.create_writer(WriterContext(0, 1, "a1b2"))
        >>> writer.write("a", WriteContext())
        >>> len(writer.prepare_commit(end_of_input=True))
        1
        """
        return []

    def begin_checkpoint(self, checkpoint_id: int) -> None:  # noqa: B027 - optional
        """Called before the ``prepare_commit`` of a checkpoint or a savepoint.

        Args:
            checkpoint_id: The number of the checkpoint or savepoint.
        """

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:  # noqa: B027 - optional
        """Called when a checkpoint is complete, after its committables were committed.

        Some checkpoints may be left out, because a later one includes the earlier ones. Savepoints
        are not reported.

        Args:
            checkpoint_id: The number of the checkpoint.
        """

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:  # noqa: B027 - optional
        """Called when a checkpoint will never be complete.

        Args:
            checkpoint_id: The number of the checkpoint.
        """

    def has_open_transaction(self) -> bool:
        """Return True if records since the last ``prepare_commit`` are lost with this writer.

        A lost task then returns the job to its last checkpoint. Otherwise the job continues with
        the state of the last epoch.

        >>> from firesteel.datastream.connectors.base import SinkWriter
        >>> class CountingWriter(SinkWriter):
        ...     written = 0
        ...     def write(self, value, context):
        ...         self.written += 1
        ...     def has_open_transaction(self):
        ...         return self.written > 0
        >>> CountingWriter().has_open_transaction()
        False
        """
        return False

    def snapshot_state(self) -> Any:
        """Return JSON from which ``Sink.create_writer`` can continue.

        Open files are an example. Also called at the end of epochs without a checkpoint, after
        ``flush``.

        >>> from firesteel.datastream.connectors.base import SinkWriter
        >>> class PendingWriter(SinkWriter):
        ...     def __init__(self, pending):
        ...         self._pending = pending
        ...     def write(self, value, context):
        ...         self._pending.append(value)
        ...     def snapshot_state(self):
        ...         return self._pending
        >>> PendingWriter(["a"]).snapshot_state()
        ['a']
        """
        return None

    def close(self) -> None:  # noqa: B027 - optional
        """Release files and connections. Files that a snapshot names must stay."""


@public_evolving
class Committer(ABC):
    """Makes committables visible. Not in PyFlink.

    A commit may be repeated after a failure. The second one must have no effect.

    >>> from firesteel.datastream.connectors.base import Committer
    >>> class TableCommitter(Committer):
    ...     def __init__(self):
    ...         self.table = {}
    ...     def commit(self, committables):
    ...         self.table.update(committables)
    ...     def close(self):
    ...         print("closed")
    >>> committer = TableCommitter()
    >>> committer.commit([("row-1", "a")])
    >>> committer.commit([("row-1", "a")])
    >>> committer.table
    {'row-1': 'a'}
    """

    @abstractmethod
    def commit(self, committables: Sequence[Any]) -> None:
        """Make committables visible.

        Args:
            committables: Results of ``SinkWriter.prepare_commit``.
        """

    def close(self) -> None:  # noqa: B027 - optional
        """Release connections."""


class Sink(ABC):
    """A sink for ``DataStream.sink_to()``. Derive from it to write your own.

    >>> from firesteel.datastream.connectors.base import Committer, Sink, SinkWriter
    >>> class BatchWriter(SinkWriter):
    ...     def __init__(self):
    ...         self._pending = []
    ...     def write(self, value, context):
    ...         self._pending.append(value)
    ...     def prepare_commit(self, end_of_input):
    ...         committable, self._pending = self._pending, []
    ...         return [committable]
    >>> class PrintCommitter(Committer):
    ...     def commit(self, committables):
    ...         for committable in committables:
    ...             print("commit", committable)
    >>> class BatchSink(Sink):
    ...     def create_writer(self, context, state=None):
    ...         return BatchWriter()
    ...     def create_committer(self):
    ...         return PrintCommitter()
    >>> sink = env.from_collection(["a", "b"]).sink_to(BatchSink())
    >>> result = env.execute()
    commit ['a', 'b']
    """

    #: True for sinks that are sink functions in PyFlink. ``add_sink`` takes them, too.
    is_sink_function: bool = False

    @abstractmethod
    @public_evolving
    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter:
        """Create the writer of a subtask. Not in PyFlink.

        Args:
            context: The place of the writer in the job.
            state: The result of a writer's ``snapshot_state``, or None for a new job. After a
                change of the parallelism it may be a list with the results of several writers.
        """

    @public_evolving
    def create_committer(self) -> Committer | None:
        """Return a committer, or None if records are visible when they are written. Not in PyFlink."""
        return None

    @public_evolving  # noqa: B027 - optional
    def recover(self, committables: Sequence[Any]) -> None:
        """Prepare the external system for an attempt of the job. Not in PyFlink.

        Called in the driver before the first writer is created, also after each restart. Override
        it to commit the transactions of the restored checkpoint at once, and to remove all others.
        The committer gets the same committables later.

        Args:
            committables: The committables of all subtasks in the restored checkpoint.

        >>> from firesteel.testing import ListSink
        >>> ListSink().recover([])
        """

    @public_evolving
    def recover_in_term(self, committables: Sequence[Any], check: Callable[[], None]) -> None:
        """Call ``recover`` in the term of a master. Not in PyFlink.

        Override it if ``recover`` removes what it finds in the external system: list it, call
        ``check``, and remove it. So a master that was frozen removes nothing of a later one.

        Args:
            committables: The committables of all subtasks in the restored checkpoint.
            check: Raises an error if a different master leads the job now.

        >>> from firesteel.testing import ListSink
        >>> ListSink().recover_in_term([], lambda: None)
        """
        self.recover(committables)

    @public_evolving
    def with_configuration(self, configuration: Configuration) -> Sink:
        """Return the sink for a job with this configuration. Not in PyFlink.

        Firesteel calls it when a job is submitted, as for sources.

        >>> from firesteel.common import Configuration
        >>> from firesteel.testing import ListSink
        >>> ListSink().with_configuration(Configuration())
        ListSink(...)
        """
        return self

    @public_evolving
    def with_input_type(self, type_info: Any) -> Sink:
        """Return the sink for a stream of a type. Called when the sink is attached. Not in PyFlink.

        Args:
            type_info: The type of the stream.

        >>> from firesteel.testing import ListSink
        >>> ListSink().with_input_type(Types.STRING())
        ListSink(...)
        """
        return self
