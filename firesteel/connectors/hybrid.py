"""HybridSource: sources that are read one after the other, as one source.

The enumerator switches to the next source when the present one has found all of its splits and the
readers have read them. A checkpoint contains the number of the present source and the state of its
enumerator. A split belongs to a source by its number, so a restored job continues where it was,
before or after a switch.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.columns import records_in
from firesteel.common.configuration import Configuration
from firesteel.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
)
from firesteel.errors import InvalidProgramError
from firesteel.stability import public_evolving
from firesteel.usercode import pickling

__all__ = ["HybridSource", "HybridSourceBuilder", "SourceSwitchContext"]

# The enumerator asks this often if the readers have finished the present source.
_SWITCH_SECONDS = 0.1

SourceFactory = Callable[["SourceSwitchContext"], Source]


@public_evolving
class SourceSwitchContext:
    """Facts for the function that creates the next source of a HybridSource. Not in PyFlink.

    >>> from firesteel.datastream.connectors.hybrid_source import SourceSwitchContext
    >>> SourceSwitchContext(None).get_previous_enumerator() is None
    True
    """

    def __init__(self, previous_enumerator: SplitEnumerator | None) -> None:
        self._previous_enumerator = previous_enumerator

    def get_previous_enumerator(self) -> SplitEnumerator | None:
        """Return the enumerator of the source before, which has found all of its splits.

        None before the first source.
        """
        return self._previous_enumerator


class HybridSource(Source):
    """Reads sources one after the other, such as files and then a Kafka topic.

    All sources except the last one must be bounded. They must give records of the same type.

    >>> from firesteel.datastream.connectors.hybrid_source import HybridSource
    >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
    >>> history, present = NumberSequenceSource(1, 3), NumberSequenceSource(4, 6)
    >>> source = HybridSource.builder(history).add_source(present).build()
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    >>> list(stream.execute_and_collect())
    [1, 2, 3, 4, 5, 6]
    """

    def __init__(
        self,
        sources: Sequence[Source | SourceFactory],
        boundedness: Boundedness,
        configuration: Configuration | None = None,
    ) -> None:
        self._sources = tuple(sources)
        self._boundedness = boundedness
        self._configuration = configuration
        known = [one for one in self._sources if isinstance(one, Source)]
        self.replayable = all(source.replayable for source in known)
        tags = [source.broken_records_tag for source in known if source.broken_records_tag]
        self.broken_records_tag = tags[0] if tags else None

    @staticmethod
    def builder(first_source: Source) -> HybridSourceBuilder:
        """Start building a source.

        Args:
            first_source: The source to read first.
        """
        return HybridSourceBuilder(first_source)

    def get_boundedness(self) -> Boundedness:
        return self._boundedness

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return _HybridEnumerator(self, parallelism, state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _HybridReader(self, context)

    def with_configuration(self, configuration: Configuration) -> Source:
        """Return the source with all of its sources for a job with this configuration.

        >>> from firesteel.common import Configuration
        >>> from firesteel.datastream.connectors.hybrid_source import HybridSource
        >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
        >>> source = HybridSource.builder(NumberSequenceSource(1, 3)).build()
        >>> source.with_configuration(Configuration())
        HybridSource(NumberSequenceSource(1, 3))
        """
        sources = [
            one.with_configuration(configuration) if isinstance(one, Source) else one
            for one in self._sources
        ]
        return HybridSource(sources, self._boundedness, configuration)

    def get_produced_type(self) -> Any:
        types = [one.get_produced_type() for one in self._sources if isinstance(one, Source)]
        return types[0] if all(one == types[0] for one in types) else None

    def __repr__(self) -> str:
        return f"HybridSource({', '.join(map(repr, self._sources))})"

    def _is_last(self, number: int) -> bool:
        return number == len(self._sources) - 1

    def _create(self, number: int, previous: SplitEnumerator | None) -> tuple[Source, str | None]:
        """Return a source, and its pickle if a function of the user has created it."""
        given = self._sources[number]
        if isinstance(given, Source):
            return given, None
        created = given(SourceSwitchContext(previous))
        if not isinstance(created, Source):
            raise TypeError(f"A function of a HybridSource must return a Source, got {created!r}")
        if self._configuration is not None:
            created = created.with_configuration(self._configuration)
        return created, base64.b64encode(pickling.dumps(created)).decode()

    def _load(self, number: int, pickled: str | None) -> Source:
        """Return a source that ``_create`` has returned before."""
        if pickled is not None:
            source: Source = pickling.loads(base64.b64decode(pickled))
            return source
        given = self._sources[number]
        assert isinstance(given, Source)
        return given


class HybridSourceBuilder:
    """Builds a HybridSource.

    >>> from firesteel.datastream.connectors.base import Boundedness
    >>> from firesteel.datastream.connectors.hybrid_source import HybridSource
    >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
    >>> def present(context):
    ...     return NumberSequenceSource(4, 6)
    >>> builder = HybridSource.builder(NumberSequenceSource(1, 3))
    >>> source = builder.add_source(present, Boundedness.BOUNDED).build()
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    >>> list(stream.execute_and_collect())
    [1, 2, 3, 4, 5, 6]
    """

    def __init__(self, first_source: Source) -> None:
        self._sources: list[Source | SourceFactory] = []
        self._boundedness = Boundedness.BOUNDED
        self.add_source(first_source)

    def add_source(
        self, source: Source | SourceFactory, boundedness: Boundedness | None = None
    ) -> HybridSourceBuilder:
        """Add the source to read next.

        Args:
            source: The source. Beyond PyFlink, it may be a function that creates the source when the
                job switches to it. The function takes a SourceSwitchContext and runs in the driver.
            boundedness: Tells if the source of a function ends.

        Raises:
            InvalidProgramError: The source before this one does not end.
        """
        if self._boundedness is not Boundedness.BOUNDED:
            raise InvalidProgramError(
                f"{self._sources[-1]!r} does not end, so a HybridSource cannot switch to the next "
                "source. All sources except the last one must be bounded."
            )
        if isinstance(source, Source):
            self._boundedness = source.get_boundedness()
        elif callable(source):
            if boundedness is None:
                raise TypeError("add_source of a function needs its boundedness")
            self._boundedness = boundedness
        else:
            raise TypeError(f"HybridSource needs a Source or a function, got {source!r}")
        self._sources.append(source)
        return self

    def build(self) -> HybridSource:
        """Create the source."""
        return HybridSource(self._sources, self._boundedness)


_is_last = HybridSource._is_last  # noqa: SLF001 - in the module of HybridSource
_create = HybridSource._create  # noqa: SLF001 - in the module of HybridSource
_load = HybridSource._load  # noqa: SLF001 - in the module of HybridSource


class _HybridEnumerator(SplitEnumerator):
    def __init__(self, hybrid: HybridSource, parallelism: int, state: Any) -> None:
        self._hybrid = hybrid
        self._parallelism = parallelism
        self._all_read = False
        if state is None:
            self._number = 0
            source, self._pickled = _create(hybrid, 0, None)
            self._inner = source.create_enumerator(parallelism)
        else:
            self._number, self._pickled = state["source"], state["pickled"]
            source = _load(hybrid, self._number, self._pickled)
            self._inner = source.create_enumerator(parallelism, state["state"])

    def all_splits_read(self) -> None:
        self._all_read = True

    def discover_splits(self) -> Sequence[SourceSplit]:
        all_read, self._all_read = self._all_read, False
        if all_read and self._waits_for_switch():
            self._switch()
        return [
            _wrap(split, self._number, self._pickled) for split in self._inner.discover_splits()
        ]

    def _waits_for_switch(self) -> bool:
        return not _is_last(self._hybrid, self._number) and self._inner.is_complete()

    def _switch(self) -> None:
        source, pickled = _create(self._hybrid, self._number + 1, self._inner)
        following = source.create_enumerator(self._parallelism)
        self._inner.close()
        self._number, self._pickled, self._inner = self._number + 1, pickled, following

    def _own(self, splits: Sequence[SourceSplit]) -> list[SourceSplit]:
        """Return the splits of the present source, as its enumerator knows them."""
        return [_unwrap(split) for split in splits if split.properties["source"] == self._number]

    def is_complete(self) -> bool:
        return _is_last(self._hybrid, self._number) and self._inner.is_complete()

    def has_pending(self, splits: Sequence[SourceSplit]) -> bool | None:
        return self._inner.has_pending(self._own(splits))

    def snapshot_state(self) -> Any:
        return {
            "source": self._number,
            "pickled": self._pickled,
            "state": self._inner.snapshot_state(),
        }

    def next_discovery_delay(self) -> float:
        if self._waits_for_switch():
            return _SWITCH_SECONDS
        return self._inner.next_discovery_delay()

    def checkpoint_complete(self, splits: Sequence[SourceSplit]) -> None:
        self._inner.checkpoint_complete(self._own(splits))

    def close(self) -> None:
        self._inner.close()


def _wrap(split: SourceSplit, number: int, pickled: str | None) -> SourceSplit:
    """Return a split of the source with a number, as the job knows it."""
    properties = {
        "source": number,
        "pickled": pickled,
        "split": split.split_id,
        "properties": dict(split.properties),
    }
    return SourceSplit(f"{number}:{split.split_id}", properties, split.position)


def _unwrap(split: SourceSplit) -> SourceSplit:
    properties = split.properties
    return SourceSplit(properties["split"], properties["properties"], split.position)


class _HybridReader(SourceReader):
    """Reads with the reader of the present source. All splits of a reader belong to one source."""

    def __init__(self, hybrid: HybridSource, context: ReaderContext) -> None:
        self._hybrid = hybrid
        self._context = context
        self._number = -1
        self._pickled: str | None = None
        self._type: Any = None
        self._reader: SourceReader | None = None

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        for split in splits:
            self._open(split.properties["source"], split.properties["pickled"])
        if self._reader is not None:
            self._reader.add_splits([_unwrap(split) for split in splits])

    def _open(self, number: int, pickled: str | None) -> None:
        if number == self._number:
            return
        if self._reader is not None:
            # All splits of the source before have been read.
            self._reader.close()
        self._number, self._pickled = number, pickled
        source = _load(self._hybrid, number, pickled)
        self._type = source.get_produced_type()
        self._reader = source.create_reader(self._context)

    def read(self, limit: int) -> list[Any] | range:
        # The sources may have different columns.
        read = [] if self._reader is None else self._reader.read(limit)
        records: list[Any] | range = records_in(read, self._type)
        return records

    def snapshot_splits(self) -> list[SourceSplit]:
        if self._reader is None:
            return []
        return [
            _wrap(split, self._number, self._pickled) for split in self._reader.snapshot_splits()
        ]

    def next_read_delay(self) -> float:
        return 0.1 if self._reader is None else self._reader.next_read_delay()

    def timestamps(self) -> list[int] | None:
        return None if self._reader is None else self._reader.timestamps()

    def current_split(self) -> str | None:
        split = None if self._reader is None else self._reader.current_split()
        return None if split is None else f"{self._number}:{split}"

    def names_splits(self) -> bool:
        return self._reader is None or self._reader.names_splits()

    def broken_records(self) -> list[Any]:
        return [] if self._reader is None else self._reader.broken_records()

    def begin_checkpoint(self, checkpoint_id: int) -> None:
        if self._reader is not None:
            self._reader.begin_checkpoint(checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        if self._reader is not None:
            self._reader.notify_checkpoint_complete(checkpoint_id)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
