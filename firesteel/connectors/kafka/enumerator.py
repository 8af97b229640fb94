"""Finds partitions in the driver, and determines the offsets at which each one starts and stops."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any

from firesteel.connectors.base import SourceSplit, SplitEnumerator
from firesteel.connectors.kafka.cluster import KafkaCluster
from firesteel.connectors.kafka.errors import KafkaUnreachableError, TopicRecreatedError
from firesteel.connectors.kafka.offsets import KafkaOffsetsInitializer, SettledStart
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

    With every discovery, and after a restore, it makes sure that the topics are still the same.
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
        settled: SettledStart,
        state: Any = None,
    ) -> None:
        """Find the partitions, unless there is a state.

        ``settled`` is the start of earlier attempts of the same job, and is completed here.
        """
        self._cluster = cluster
        self._subscription = subscription
        self._stopping = stopping
        self._discovery_interval = discovery_interval
        self._commits = commits
        self._settled = SettledStart() if starting.resolves_again else settled
        # The offsets at which the known partitions stop; None if they never stop.
        self._stops: dict[KafkaTopicPartition, int | None] = {}
        # The ids of the topics of known partitions.
        self._topic_ids = self._settled.topic_ids
        self._complete = False
        # False until a restored enumerator has seen that the topics are the same.
        self._checked = state is None
        self._found: list[SourceSplit] = []
        if state is None:
            is_new = not self._settled.is_known
            self._found = self._find(starting if is_new else KafkaOffsetsInitializer.earliest())
            self._settled.is_known = True
        else:
            self._stops = {KafkaTopicPartition(t, p): stop for t, p, stop in state["partitions"]}
            self._topic_ids = state.get("topic_ids", {})
            self._complete = state["complete"]

    def discover_splits(self) -> Sequence[SourceSplit]:
        splits, self._found = self._found, []
        if not splits:
            try:
                self._same_topics({p.topic for p in self._stops}, _DISCOVERY_SECONDS)
                self._checked = True
                if not self._complete:
                    splits = self._find(KafkaOffsetsInitializer.earliest(), _DISCOVERY_SECONDS)
            except KafkaUnreachableError as error:
                _LOG.warning("Cannot look for new partitions: %s", error)
        self._stops |= {_partition_of(split): split.properties["stop"] for split in splits}
        self._complete = self._discovery_interval is None
        return splits

    def is_complete(self) -> bool:
        return self._complete and self._checked

    def next_discovery_delay(self) -> float:
        return self._discovery_interval or 1.0

    def snapshot_state(self) -> Any:
        partitions = sorted(self._stops)
        return {
            "partitions": [[p.topic, p.partition, self._stops[p]] for p in partitions],
            "topic_ids": self._topic_ids,
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

    def _same_topics(self, names: Collection[str], timeout: float | None) -> dict[str, str]:
        """Return the ids of topics. A topic with a new id is an error.

        Readers report the partitions of topics that do not exist any more.
        """
        found = self._cluster.topic_ids(names, timeout)
        known = self._topic_ids
        recreated = [name for name, new in found.items() if known.get(name, new) != new]
        if recreated:
            raise TopicRecreatedError(recreated)
        return found

    def _find(
        self, starting: KafkaOffsetsInitializer, timeout: float | None = None
    ) -> list[SourceSplit]:
        selected = self._subscription.select(self._cluster.topics(timeout))
        new = [partition for partition in selected if partition not in self._stops]
        if not new:
            return []
        self._topic_ids |= self._same_topics({partition.topic for partition in new}, timeout)
        starts = starting.starting_offsets(new, self._cluster)
        settled = self._settled.offsets
        starts |= {partition: settled[partition] for partition in new if partition in settled}
        settled |= starts
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
