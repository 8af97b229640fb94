"""What a source and a sink are: split model for sources, writer and committer for sinks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

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
    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


class Boundedness(Enum):
    BOUNDED = "BOUNDED"
    CONTINUOUS_UNBOUNDED = "CONTINUOUS_UNBOUNDED"


@dataclass(frozen=True, slots=True)
class SourceSplit:
    """A part of a source that one reader reads. Everything in it is JSON, so that a checkpoint can keep it.

    ``properties`` say what to read and never change; ``position`` says how far a reader has come
    (None: not begun).
    """

    split_id: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    position: Any = None

    def at(self, position: Any) -> SourceSplit:
        return replace(self, position=position)


class SplitEnumerator(ABC):
    """Lives in the driver: finds splits and knows whether something is there to be read."""

    @abstractmethod
    def discover_splits(self) -> Sequence[SourceSplit]:
        """Splits found since the last call. Called between epochs."""

    def is_complete(self) -> bool:
        """Whether no further split will ever be found. A bounded source ends after that."""
        return True

    def has_pending(self, splits: Sequence[SourceSplit]) -> bool | None:
        """Whether ``splits``, at their positions, have something to read now. None: unknown."""
        return None

    def snapshot_state(self) -> Any:
        """JSON from which ``Source.create_enumerator`` goes on."""
        return None

    def next_discovery_delay(self) -> float:
        """While not complete: seconds until ``discover_splits`` is worth calling again."""
        return 1.0

    def checkpoint_complete(self, splits: Sequence[SourceSplit]) -> None:  # noqa: B027 - optional
        """A checkpoint is complete that has these splits, at their positions, still to be read.

        Splits that were discovered before it and are not among them have been read to their end.
        Must not wait.
        """

    def close(self) -> None:  # noqa: B027 - optional
        """Release what ``discover_splits`` opened."""


@dataclass(frozen=True, slots=True)
class ReaderContext:
    subtask_index: int
    parallelism: int


class SourceReader(ABC):
    """Lives in a slot: reads the splits assigned to it, from their positions on."""

    @abstractmethod
    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        """Take over splits, new ones or restored ones."""

    @abstractmethod
    def read(self, limit: int) -> list[Any] | range:
        """At most ``limit`` records, as a list or a range. An empty one: nothing to read right now. Never waits long."""

    @abstractmethod
    def snapshot_splits(self) -> list[SourceSplit]:
        """The unfinished splits at their present positions: everything ``read`` returned is behind them."""

    def next_read_delay(self) -> float:
        """After ``read`` returned nothing: seconds until it is worth asking again."""
        return 0.1

    def timestamps(self) -> list[int] | None:
        """Event timestamps (ms) of the records of the last ``read``, where the source has them."""
        return None

    def current_split(self) -> str | None:
        """The split that all records of the last ``read`` came from; None where they may be mixed.

        Each split that is named here has a watermark of its own; all others share one.
        """
        return None

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        """Give no records of these splits for now, or give them again.

        Override it together with ``current_split`` for sources that ``with_watermark_alignment``
        slows down: splits that are far ahead then wait, while the others are read. A reader that
        cannot do that waits as a whole. Splits that have ended may be among those named here.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot pause single splits")

    def close(self) -> None:  # noqa: B027 - optional
        """Release files and connections."""


class Source(ABC):
    """A user-written source: describe boundedness, make an enumerator and readers.

    It is pickled to the tasks, so it holds parameters only.
    """

    #: Whether reading again from a position gives the same records. A source that says False
    #: (a socket) loses or repeats records after a failure.
    replayable: bool = True

    #: How a reader reads the splits that it has. True: side by side; all splits are assigned at
    #: once, and each holds back the watermark from then on, read or not. False: one after the
    #: other; only those hold it back that are begun. None: not said; then every split that is
    #: assigned holds it back, if ``SourceReader.current_split`` tells splits apart at all.
    side_by_side: bool | None = None

    @abstractmethod
    def get_boundedness(self) -> Boundedness: ...

    @abstractmethod
    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator: ...

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader: ...

    def get_produced_type(self) -> Any:
        """Type information of the records; None: pickled Python objects."""
        return None


@dataclass(frozen=True, slots=True)
class WriterContext:
    subtask_index: int
    parallelism: int
    #: Differs for each run of the job, equal for a restart of it: fit for unique file names.
    job_id: str


@dataclass(slots=True)
class WriteContext:
    """What a writer or sink function may ask about the record at hand."""

    _timestamp: int | None = None
    _watermark: int = -(2**63)
    _processing_time: int = 0

    def timestamp(self) -> int | None:
        return self._timestamp

    def current_watermark(self) -> int:
        return self._watermark

    def current_processing_time(self) -> int:
        return self._processing_time


class SinkWriter(ABC):
    """Lives in a slot as long as the job. Committables become visible through the Committer."""

    @abstractmethod
    def write(self, value: Any, context: WriteContext) -> None: ...

    def write_batch(
        self, values: list[Any], timestamps: list[int] | None, context: WriteContext
    ) -> None:
        """Override where a whole batch can be written faster than record by record."""
        if timestamps is None:
            context._timestamp = None
            for value in values:
                self.write(value, context)
            return
        for value, timestamp in zip(values, timestamps, strict=True):
            context._timestamp = timestamp
            self.write(value, context)

    def flush(self, end_of_input: bool) -> None:  # noqa: B027 - optional
        """Everything written so far leaves the process. Called at the end of every epoch."""

    def next_flush_delay(self) -> float | None:
        """Seconds until ``flush`` should be called even if no record comes; None: no need.

        Asked at the end of every epoch; an epoch is run then, with or without records.
        """
        return None

    def prepare_commit(self, end_of_input: bool) -> list[Any]:
        """Committables (JSON) that belong to what was written since the last call.

        Called at a checkpoint and at the end of the input, before ``snapshot_state``: what a
        committable names is no longer part of the snapshot.
        """
        return []

    def snapshot_state(self) -> Any:
        """JSON from which ``Sink.create_writer`` goes on, e.g. files still in progress.

        Also called at the end of epochs without a checkpoint, after ``flush``.
        """
        return None

    def close(self) -> None:  # noqa: B027 - optional
        """Release files and connections; what a snapshot names must stay."""


class Committer(ABC):
    """Makes committables visible. A commit may be asked for twice and must then do nothing."""

    @abstractmethod
    def commit(self, committables: Sequence[Any]) -> None: ...

    def close(self) -> None:  # noqa: B027 - optional
        """Release connections."""


class Sink(ABC):
    """A user-written sink: make a writer, and a committer where writing takes two phases."""

    @abstractmethod
    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter:
        """``state`` is what a writer's ``snapshot_state`` gave; None at first.

        After a change of the parallelism it may be a list of what several writers gave.
        """

    def create_committer(self) -> Committer | None:
        return None

    def with_input_type(self, type_info: Any) -> Sink:
        """The sink for a stream of this type; called when the sink is attached to a stream."""
        return self
