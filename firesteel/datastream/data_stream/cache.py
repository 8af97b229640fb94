"""Cached streams: batch jobs write their records to files, and later jobs read them."""

from __future__ import annotations

import weakref
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.record_files import RecordFileSink, RecordFileSource
from firesteel.datastream.data_stream.data_stream import DataStream
from firesteel.datastream.data_stream.stream_base import RecordedStream
from firesteel.filesystems.scratch import ScratchDirectory
from firesteel.graph.operator_specs import SinkSpec, SourceSpec
from firesteel.graph.transformations import Origin, Transformation

if TYPE_CHECKING:
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment


class StreamCache(RecordedStream):
    """The files of a cached stream. ``computed`` are the origins of the stream.

    The files belong to the source that reads them. They are deleted when no cache, stream and job
    refers to it any more.
    """

    def __init__(
        self,
        computed: tuple[Origin, ...],
        value_type: TypeInformation,
        parallelism: int | None,
        root: str | None,
    ) -> None:
        super().__init__(computed)
        self._type = value_type
        self._parallelism = parallelism
        self._root = root
        self._source: Transformation | None = None
        # The job that writes the cache, and what will read it.
        self._writing: tuple[Future[Any], RecordFileSource] | None = None

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The origins of the records: the files once they are written, before that the computation."""
        self._look()
        return self._origins if self._source is None else (Origin(self._source),)

    def is_computed_by(self, transformations: list[Transformation]) -> bool:
        """Return True if a job with these transformations computes the stream, and should write it."""
        self._look()
        if self._source is not None:
            return False
        wanted = {origin.transformation.id for origin in self._origins}
        return wanted <= {one.id for one in _all_before(transformations)}

    def writing(self) -> Transformation:
        """Return the sink for a job that computes the stream."""
        scratch = ScratchDirectory("cache", self._root)
        directory = str(scratch.path / "records")
        source = RecordFileSource(directory)
        weakref.finalize(source, scratch.remove)
        return Transformation(
            name="Cache",
            spec=SinkSpec(RecordFileSink(directory)),
            inputs=(self._origins,),
            parallelism=self._parallelism,
            driver_object=CacheWriting(self, source),
        )

    def written_by(self, result: Future[Any], source: RecordFileSource) -> None:
        """Remember the job that writes the files which ``source`` will read."""
        self._writing = result, source

    def _look(self) -> None:
        """Switch to the files if the job that writes them has ended without an error."""
        if self._writing is None or not self._writing[0].done():
            return
        result, source = self._writing
        self._writing = None
        if result.exception() is None:
            self._source = Transformation(
                name="Cached",
                spec=SourceSpec(source, None),
                output_type=self._type,
                parallelism=self._parallelism,
            )

    def invalidate(self) -> None:
        """Forget the files. The next job that needs the stream computes it again."""
        self._source = self._writing = None


@dataclass(frozen=True, slots=True, eq=False)
class CacheWriting:
    """The cache whose records a sink writes, and the source that will read them."""

    cache: StreamCache
    source: RecordFileSource


def _all_before(transformations: list[Transformation]) -> list[Transformation]:
    found: dict[int, Transformation] = {}
    waiting = list(transformations)
    while waiting:
        one = waiting.pop()
        if one.id not in found:
            found[one.id] = one
            waiting += [origin.transformation for origins in one.inputs for origin in origins]
    return list(found.values())


class CachedDataStream(DataStream):
    """A stream whose records are kept for later jobs: the result of ``cache``.

    >>> _ = env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    >>> slow = env.from_collection([1, 2]).map(lambda number: number * 10).cache()
    >>> list(slow.execute_and_collect())  # computes the stream and writes it
    [10, 20]
    >>> list(slow.map(str).execute_and_collect())  # reads the files
    ['10', '20']
    >>> slow.invalidate()
    """

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        cache: StreamCache,
        value_type: TypeInformation,
    ) -> None:
        super().__init__(environment, cache.origins, value_type)
        # The origins of the cache change when it has been written.
        self.recorded = self._cache = cache

    def invalidate(self) -> None:
        """Drop the records. A job that uses the stream again computes and caches it again."""
        self._cache.invalidate()
