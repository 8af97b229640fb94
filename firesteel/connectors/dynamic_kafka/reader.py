"""Reads the partitions of several clusters in a slot, with a reader for each cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from firesteel.connectors.base import ReaderContext, SourceReader, SourceSplit
from firesteel.connectors.dynamic_kafka.clusters import Cluster, unwrap, wrap
from firesteel.connectors.kafka.reader import KafkaPartitionReader

if TYPE_CHECKING:
    from firesteel.connectors.dynamic_kafka.source import DynamicKafkaSource

__all__ = ["DynamicKafkaReader"]

_LOG = logging.getLogger(__name__)

_IDLE_SECONDS = 0.1
# Readers ask for the streams more often than the enumerator. A topic that the enumerator has seen
# leave and come back has therefore left its readers in between.
_REQUESTS_PER_INTERVAL = 3


class DynamicKafkaReader(SourceReader):
    """Reads clusters in turns, and gives up those that the metadata service no longer names."""

    def __init__(self, source: DynamicKafkaSource, context: ReaderContext) -> None:
        """Create a reader. It asks for the streams when it gets its first split.

        Args:
            source: The source.
            context: The place of the reader.
        """
        self._source = source
        self._context = context
        self._clusters: dict[str, Cluster] | None = None
        self._readers: dict[str, KafkaPartitionReader] = {}
        # By cluster and the split of its source: the number that is part of the split's name.
        self._generations: dict[tuple[str, str], int] = {}
        self._turn: list[str] = []
        self._last: str | None = None
        self._next_request = 0.0

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        if any(self._cluster_of(split) is None for split in splits):
            # The enumerator knows more than this reader.
            self._schedule()
            wanted = self._source.clusters()
            if self._source.discovery_interval is None:
                # The streams do not change for the splits that are read already.
                self._clusters = wanted
            else:
                self._take(wanted)
        for split in splits:
            name = split.properties["cluster"]
            cluster = self._cluster_of(split)
            if cluster is None:
                _LOG.info("Split %s is not read: its topic has left the stream", split.split_id)
                continue
            reader = self._readers.get(name)
            if reader is None:
                reader = self._readers[name] = self._new_reader(name, cluster)
                self._turn.append(name)
            inner = unwrap(split)
            key = name, inner.split_id
            if key in self._generations:
                reader.remove_splits({inner.split_id})
            self._generations[key] = split.properties["generation"]
            reader.add_splits([inner])

    def read(self, limit: int) -> list[Any]:
        if self._source.discovery_interval is not None and self._readers:
            self._follow()
        for _ in range(len(self._turn)):
            name = self._turn.pop(0)
            self._turn.append(name)
            try:
                values = self._readers[name].read(limit)
            except Exception:
                if self._source.is_active(name):
                    raise
                _LOG.warning("Kafka cluster %s is not active and not read any more", name)
                self._drop(name)
                continue
            if values:
                self._last = name
                return values
        return []

    def timestamps(self) -> list[int] | None:
        return None if self._last is None else self._readers[self._last].timestamps()

    def current_split(self) -> str | None:
        if self._last is None:
            return None
        split = self._readers[self._last].current_split()
        if split is None:
            return None
        return f"{self._last}:{self._generations[self._last, split]}:{split}"

    def snapshot_splits(self) -> list[SourceSplit]:
        return [
            wrap(split, name, self._generations[name, split.split_id])
            for name, reader in self._readers.items()
            for split in reader.snapshot_splits()
        ]

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        for name, reader in self._readers.items():
            own = {
                f"{name}:{generation}:{split}": split
                for (cluster, split), generation in self._generations.items()
                if cluster == name
            }
            pause = [own[split] for split in splits_to_pause if split in own]
            resume = [own[split] for split in splits_to_resume if split in own]
            if pause or resume:
                reader.pause_or_resume_splits(pause, resume)

    def next_read_delay(self) -> float:
        return min(
            (reader.next_read_delay() for reader in self._readers.values()), default=_IDLE_SECONDS
        )

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._source.service.close()

    def _cluster_of(self, split: SourceSplit) -> Cluster | None:
        properties = split.properties
        cluster = (self._clusters or {}).get(properties["cluster"])
        if cluster is None or properties["properties"]["topic"] not in cluster.topics:
            return None
        return cluster

    def _new_reader(self, name: str, cluster: Cluster) -> KafkaPartitionReader:
        reader = self._source.source_of(name, cluster).create_reader(self._context)
        assert isinstance(reader, KafkaPartitionReader)
        return reader

    def _schedule(self) -> None:
        interval = self._source.discovery_interval or 0.0
        self._next_request = time.monotonic() + interval / _REQUESTS_PER_INTERVAL

    def _follow(self) -> None:
        """Ask for the streams when it is time."""
        if time.monotonic() < self._next_request:
            return
        self._schedule()
        try:
            wanted = self._source.clusters()
        except Exception as error:  # noqa: BLE001 - the enumerator counts failures
            _LOG.warning("The streams of %r cannot be described: %s", self._source, error)
            return
        self._take(wanted)

    def _take(self, wanted: dict[str, Cluster]) -> None:
        """Follow the clusters to their addresses of now, and give up what has left the streams."""
        before, self._clusters = self._clusters or {}, wanted
        for name in [*self._readers]:
            cluster = wanted.get(name)
            if cluster is None:
                self._drop(name)
                continue
            reader = self._readers[name]
            if cluster.properties != before[name].properties:
                self._readers[name] = self._moved(name, reader, cluster)
                reader = self._readers[name]
            gone = {
                split.split_id
                for split in reader.snapshot_splits()
                if split.properties["topic"] not in cluster.topics
            }
            if gone:
                reader.remove_splits(gone)
                for split in gone:
                    del self._generations[name, split]

    def _moved(
        self, name: str, reader: KafkaPartitionReader, cluster: Cluster
    ) -> KafkaPartitionReader:
        """Return a reader at the same positions, for a cluster whose address has changed."""
        splits = reader.snapshot_splits()
        reader.close()
        if self._last == name:
            self._last = None
        moved = self._new_reader(name, cluster)
        moved.add_splits(splits)
        return moved

    def _drop(self, name: str) -> None:
        self._readers.pop(name).close()
        self._turn.remove(name)
        if self._last == name:
            self._last = None
        for key in [key for key in self._generations if key[0] == name]:
            del self._generations[key]
