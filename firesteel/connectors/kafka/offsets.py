"""Where reading starts and stops: KafkaOffsetsInitializer and its kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from firesteel.connectors.kafka.errors import NoCommittedOffsetError, OffsetOutOfRangeError
from firesteel.connectors.kafka.topic_partition import KafkaTopicPartition

if TYPE_CHECKING:
    from firesteel.connectors.kafka.cluster import KafkaCluster

__all__ = ["KafkaOffsetResetStrategy", "KafkaOffsetsInitializer"]

Offsets = dict[KafkaTopicPartition, int]


class KafkaOffsetResetStrategy(Enum):
    """What to do where there is no offset to start from, or none that the log still has."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2


class KafkaOffsetsInitializer(ABC):
    """Says for each partition where reading starts, or where it stops.

    All kinds are made by the static methods. The driver asks once, and what it gets is part of the
    split: a task that runs again starts where it started before.
    """

    #: Where a reader goes on whose position the log has no more.
    reset_strategy = KafkaOffsetResetStrategy.EARLIEST
    #: Whether committed offsets are needed, and so a group.
    needs_group = False

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """What the group of ``set_group_id`` has committed; without that, as the strategy says."""
        return _Committed(offset_reset_strategy)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first record whose timestamp (ms) is not before this one; the end if there is none."""
        return _SinceTimestamp(timestamp)

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The oldest record that Kafka has."""
        return _Earliest()

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """What comes after the job has started."""
        return _Latest()

    @staticmethod
    def offsets(
        offsets: dict[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """These offsets; for other partitions what is committed; without that, as the strategy says."""
        return _Named(offsets, offset_reset_strategy)

    @abstractmethod
    def resolve(
        self, partitions: Collection[KafkaTopicPartition], cluster: KafkaCluster
    ) -> Offsets:
        """An offset for each of the partitions."""

    def starting_offsets(
        self, partitions: Collection[KafkaTopicPartition], cluster: KafkaCluster
    ) -> Offsets:
        """The same, within what the log has now."""
        return self.resolve(partitions, cluster)


class _Earliest(KafkaOffsetsInitializer):
    def resolve(
        self, partitions: Collection[KafkaTopicPartition], cluster: KafkaCluster
    ) -> Offsets:
        return cluster.earliest(partitions)


class _Latest(KafkaOffsetsInitializer):
    reset_strategy = KafkaOffsetResetStrategy.LATEST

    def resolve(
        self, partitions: Collection[KafkaTopicPartition], cluster: KafkaCluster
    ) -> Offsets:
        return cluster.latest(partitions)


class _SinceTimestamp(KafkaOffsetsInitializer):
    reset_strategy = KafkaOffsetResetStrategy.LATEST

    def __init__(self, timestamp: int) -> None:
        if timestamp < 0:
            raise ValueError(f"A timestamp is not negative, got {timestamp}")
        self._timestamp = timestamp

    def resolve(
        self, partitions: Collection[KafkaTopicPartition], cluster: KafkaCluster
    ) -> Offsets:
        # The ends come first: a record that is written meanwhile must not be passed over.
        ends = cluster.latest(partitions)
        return ends | cluster.first_since(self._timestamp, partitions)


class _Named(KafkaOffsetsInitializer):
    """Offsets that come from outside, so the log may not have them."""

    def __init__(
        self, offsets: Mapping[KafkaTopicPartition, int], strategy: KafkaOffsetResetStrategy
    ) -> None:
        for partition, offset in offsets.items():
            if offset < 0:
                raise ValueError(
                    f"The offset of {partition} is not negative, got {offset}; see "
                    "KafkaOffsetsInitializer.earliest() and latest()"
                )
        self._offsets = dict(offsets)
        self.reset_strategy = strategy

    def resolve(
        self, partitions: Collection[KafkaTopicPartition], cluster: KafkaCluster
    ) -> Offsets:
        offsets = {p: self._offsets[p] for p in partitions if p in self._offsets}
        others = [p for p in partitions if p not in offsets]
        offsets |= cluster.committed(others)
        missing = [p for p in others if p not in offsets]
        if missing and self.reset_strategy is KafkaOffsetResetStrategy.NONE:
            raise NoCommittedOffsetError(cluster.group, missing)
        return offsets | self._reset(missing, cluster)

    def starting_offsets(
        self, partitions: Collection[KafkaTopicPartition], cluster: KafkaCluster
    ) -> Offsets:
        offsets = self.resolve(partitions, cluster)
        first, end = cluster.earliest(partitions), cluster.latest(partitions)
        outside = [p for p in partitions if not first[p] <= offsets[p] <= end[p]]
        if outside and self.reset_strategy is KafkaOffsetResetStrategy.NONE:
            partition = outside[0]
            raise OffsetOutOfRangeError(
                partition,
                f"reading is to start at offset {offsets[partition]}, but the log has "
                f"{first[partition]} to {end[partition]}. Name another offset, or a "
                "KafkaOffsetResetStrategy other than NONE.",
            )
        return offsets | self._reset(outside, cluster)

    def _reset(self, partitions: Collection[KafkaTopicPartition], cluster: KafkaCluster) -> Offsets:
        if self.reset_strategy is KafkaOffsetResetStrategy.LATEST:
            return cluster.latest(partitions)
        return cluster.earliest(partitions)


class _Committed(_Named):
    needs_group = True

    def __init__(self, strategy: KafkaOffsetResetStrategy) -> None:
        super().__init__({}, strategy)
