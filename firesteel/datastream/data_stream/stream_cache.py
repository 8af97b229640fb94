"""The cache of a stream: written by the first job that computes it, read by those that come later."""

from __future__ import annotations

import shutil
import tempfile
import uuid
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firesteel.common.completable_future import CompletableFuture
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.connectors.record_files import RecordFileSink, RecordFileSource
from firesteel.graph.operator_specs import SinkSpec, SourceSpec
from firesteel.graph.transformations import Origin, Transformation

__all__ = ["CacheWriting", "StreamCache"]


class StreamCache:
    """``computed`` are the origins of the stream. Its files go when nobody holds the cache any more."""

    def __init__(
        self,
        computed: tuple[Origin, ...],
        value_type: TypeInformation,
        parallelism: int | None,
        root: str | None,
    ) -> None:
        self._computed = computed
        self._type = value_type
        self._parallelism = parallelism
        self._root = Path(root or tempfile.gettempdir())
        self._source: Transformation | None = None
        # The job that writes the cache, and where to.
        self._writing: tuple[CompletableFuture[Any], str] | None = None

    @property
    def origins(self) -> tuple[Origin, ...]:
        """Where consumers get the records from: the files, once they are there."""
        self._look()
        return self._computed if self._source is None else (Origin(self._source),)

    def is_computed_by(self, transformations: list[Transformation]) -> bool:
        """Whether a job with these transformations computes the stream, and should write it."""
        self._look()
        if self._source is not None:
            return False
        wanted = {origin.transformation.id for origin in self._computed}
        return wanted <= {one.id for one in _all_before(transformations)}

    def writing(self) -> Transformation:
        """The sink for the job that computes the stream; it knows this cache."""
        directory = str(self._root / f"firesteel-cache-{uuid.uuid4().hex}")
        return Transformation(
            name="Cache",
            spec=SinkSpec(RecordFileSink(directory)),
            inputs=(self._computed,),
            parallelism=self._parallelism,
            driver_object=CacheWriting(self, directory),
        )

    def written_by(self, result: CompletableFuture[Any], directory: str) -> None:
        """A job that writes the stream into ``directory`` has been started."""
        self._writing = result, directory
        weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)

    def _look(self) -> None:
        """Whether the job that writes has ended, and well."""
        if self._writing is None or not self._writing[0].done():
            return
        result, directory = self._writing
        self._writing = None
        if result.exception() is None:
            self._source = Transformation(
                name="Cached",
                spec=SourceSpec(RecordFileSource(directory), None),
                output_type=self._type,
                parallelism=self._parallelism,
            )

    def invalidate(self) -> None:
        """Forget what was written; the next job that needs it computes it again."""
        self._source = self._writing = None


@dataclass(frozen=True, slots=True, eq=False)
class CacheWriting:
    """What the sink of a job knows: whose records it writes, and where to."""

    cache: StreamCache
    directory: str


def _all_before(transformations: list[Transformation]) -> list[Transformation]:
    found: dict[int, Transformation] = {}
    waiting = list(transformations)
    while waiting:
        one = waiting.pop()
        if one.id not in found:
            found[one.id] = one
            waiting += [origin.transformation for origins in one.inputs for origin in origins]
    return list(found.values())
