"""Finds partitions in the driver, and determines the offsets at which each one starts and stops."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from firesteel.connectors.base import SourceSplit, SplitEnumerator
from firesteel.connectors.kafka.cluster import KafkaCluster
from firesteel.connectors.kafka.errors import KafkaUnreachableError
from firesteel.connectors.kafka.offsets import KafkaOffsetsInitializer
from firesteel.connectors.kafka.subscription import Subscription
from firesteel.connectors.kafka.topic_partition import KafkaTopicPartition

__all__ = ["KafkaPartitionEnumerator"]

_LOG = logging.getLogger(__name__)

# The longest time to look for new partitions. A later attempt can find them, too.
_DISCOVERY_SECONDS = 3.0


class KafkaPartitionEnumerator(SplitEnumerator):
    """Makes one split per partition, whose offsets are fixed when the partition is found.

    It looks for partitions when it is created, so that a wrong topic fails the job at its start.
    Partitions that appear later are read from their start, because they did not exist before.
    """

    def __init__(
        self,
        cluster: KafkaCluster,
        subscription: Subscription,
        *,
        starting: KafkaOffsetsInitializer,
        stopping: KafkaOffsetsInitializer | None,
        discovery_interval: float | None,
        commits: bool,
        state: Any = None,
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._stopping = stopping
        self._discovery_interval = discovery_interval
        self._commits = commits
        # The offsets at which the known partitions stop; None if they never stop.
        self._stops: dict[KafkaTopicPartition, int | None] = {}
        self._complete = False
        self._found: list[SourceSplit] = []
        if state is None:
            self._found = self._find(starting)
        else:
            self._stops = {KafkaTopicPartition(t, p): stop for t, p, stop in state["partitions"]}
            self._complete = state["complete"]

    def discover_splits(self) -> Sequence[SourceSplit]:
        if self._complete:
            return []
        splits, self._found = self._found, []
        if not splits:
            try:
                splits = self._find(KafkaOffsetsInitializer.earliest(), _DISCOVERY_SECONDS)
            except KafkaUnreachableError as error:
                _LOG.warning("Cannot look for new partitions: %s", error)
        self._stops |= {_partition_of(split): split.properties["stop"] for split in splits}
        self._complete = self._discovery_interval is None
        return splits

    def is_complete(self) -> bool:
        return self._complete

    def next_discovery_delay(self) -> float:
        return self._discovery_interval or 1.0

    def snapshot_state(self) -> Any:
        partitions = sorted(self._stops)
        return {
            "partitions": [[p.topic, p.partition, self._stops[p]] for p in partitions],
            "complete": self._complete,
        }

    def checkpoint_complete(self, splits: Sequence[SourceSplit]) -> None:
        if not self._commits:
            return
        # Partitions that are not among the splits have been read to their end.
        offsets = {p: stop for p, stop in self._stops.items() if stop is not None}
        for split in splits:
            start = split.properties["start"]
            offsets[_partition_of(split)] = start if split.position is None else split.position
        self._cluster.commit(offsets)

    def close(self) -> None:
        self._cluster.close()

    def _find(
        self, starting: KafkaOffsetsInitializer, timeout: float | None = None
    ) -> list[SourceSplit]:
        selected = self._subscription.select(self._cluster.topics(timeout))
        new = [partition for partition in selected if partition not in self._stops]
        if not new:
            return []
        starts = starting.starting_offsets(new, self._cluster)
        stops: dict[KafkaTopicPartition, int] = {}
        if self._stopping is not None:
            stops = self._stopping.resolve(new, self._cluster)
        return [
            SourceSplit(
                str(partition),
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "start": starts[partition],
                    "stop": stops.get(partition),
                },
            )
            for partition in new
        ]


def _partition_of(split: SourceSplit) -> KafkaTopicPartition:
    return KafkaTopicPartition(split.properties["topic"], split.properties["partition"])
