"""CachedDataStream: a stream whose records are kept for the next jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firesteel.datastream.data_stream.data_stream import DataStream
from firesteel.datastream.data_stream.stream_cache import StreamCache
from firesteel.graph.transformations import Origin

if TYPE_CHECKING:
    from firesteel.common.typeinfo import TypeInformation
    from firesteel.datastream.stream_execution_environment import StreamExecutionEnvironment

__all__ = ["CachedDataStream"]


class CachedDataStream(DataStream):
    """The first batch job that needs the stream writes it down; jobs of the same environment that come later read it there."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        cache: StreamCache,
        value_type: TypeInformation,
    ) -> None:
        self._cache = cache
        super().__init__(environment, cache.origins, value_type)

    @property
    def _origins(self) -> tuple[Origin, ...]:
        return self._cache.origins

    @_origins.setter
    def _origins(self, origins: tuple[Origin, ...]) -> None:
        """Those of the cache, whatever they are at the time."""

    def invalidate(self) -> None:
        """Forget the records; if the stream is used again, it is computed and cached again."""
        self._cache.invalidate()
