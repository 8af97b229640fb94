"""The clusters that a DynamicKafkaSource reads at a moment, and the names of their splits."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from firesteel.connectors.base import SourceSplit
from firesteel.connectors.dynamic_kafka.metadata import KafkaStream
from firesteel.errors import InvalidProgramError

__all__ = ["Cluster", "by_cluster", "unwrap", "wrap"]


@dataclass(frozen=True)
class Cluster:
    """The topics to read from a cluster, and the properties of its clients."""

    topics: frozenset[str]
    properties: tuple[tuple[str, str], ...]


def by_cluster(streams: Iterable[KafkaStream]) -> dict[str, Cluster]:
    """Return the clusters of streams by id. Several streams may have topics in one cluster."""
    found: dict[str, Cluster] = {}
    for stream in streams:
        for name, metadata in stream.clusters.items():
            properties = tuple(sorted((key, str(one)) for key, one in metadata.properties.items()))
            if "bootstrap.servers" not in metadata.properties:
                raise InvalidProgramError(
                    f"The metadata of stream {stream.stream_id!r} has no bootstrap.servers for the "
                    f"cluster {name!r}"
                )
            topics: Collection[str] = metadata.topics
            known = found.get(name)
            if known is not None:
                topics = {*topics, *known.topics}
            if topics:
                found[name] = Cluster(frozenset(topics), properties)
    return found


def wrap(split: SourceSplit, cluster: str, generation: int) -> SourceSplit:
    """Return a split of a cluster, as the job knows it.

    A topic that is removed and comes back has new splits, which a generation tells from the old.
    """
    properties = {"cluster": cluster, "generation": generation, "split": split.split_id}
    return SourceSplit(
        f"{cluster}:{generation}:{split.split_id}",
        {**properties, "properties": dict(split.properties)},
        split.position,
    )


def unwrap(split: SourceSplit) -> SourceSplit:
    """Return a split as the source of its cluster knows it."""
    properties = split.properties
    return SourceSplit(properties["split"], properties["properties"], split.position)
