"""KafkaOffsetsInitializer, the offsets at which reading starts and stops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from firesteel.connectors.kafka.errors import NoCommittedOffsetError, OffsetOutOfRangeError
from firesteel.connectors.kafka.topic_partition import KafkaTopicPartition
from firesteel.stability import public_evolving

if TYPE_CHECKING:
    from firesteel.connectors.kafka.cluster import KafkaCluster

__all__ = ["KafkaOffsetResetStrategy", "KafkaOffsetsInitializer", "SettledStart"]

Offsets = dict[KafkaTopicPartition, int]


@dataclass(slots=True)
class SettledStart:
    """The start of a job: offsets by partition, and the ids of the topics they belong to.

    An attempt without a checkpoint starts there again, because later offsets would skip records.
    Partitions that are not in a start that is known are new, and are read from their beginning.
    """

    is_known: bool = False
    offsets: Offsets = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)


class KafkaOffsetResetStrategy(Enum):
    """The offset to use if there is no other, or if the log no longer has it.

    LATEST and EARLIEST are the ends of the log. NONE raises an error.

    >>> from firesteel.datastream.connectors.kafka import KafkaOffsetResetStrategy
    >>> KafkaOffsetResetStrategy.EARLIEST.name
    'EARLIEST'
    """

    LATEST = 0
    EARLIEST = 1
    NONE = 2


class KafkaOffsetsInitializer(ABC):
    """Offsets at which partitions start or stop.

    The static methods create all kinds. The driver resolves the offsets once and keeps them in the
    split, so that a repeated task starts at the same place.

    >>> from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
    >>> builder = KafkaSource.builder().set_starting_offsets(KafkaOffsetsInitializer.earliest())
    >>> builder = builder.set_bounded(KafkaOffsetsInitializer.latest())
    """

    #: The offset at which a reader continues if the log no longer has its position. NONE fails the
    #: job, because records were lost.
    reset_strategy = KafkaOffsetResetStrategy.NONE
    #: True if committed offsets are needed, and therefore a group.
    needs_group = False
    #: True if an attempt without a checkpoint resolves the offsets again (see ``SettledStart``).
    resolves_again = False

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """Return the committed offsets of the group of ``set_group_id``.

        Args:
            offset_reset_strategy: The strategy for partitions without a committed offset.

        >>> from firesteel.datastream.connectors.kafka import (
        ...     KafkaOffsetResetStrategy,
        ...     KafkaOffsetsInitializer,
        ... )
        >>> offsets = KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)
        >>> offsets.reset_strategy
        <KafkaOffsetResetStrategy.EARLIEST: 1>
        """
        return _Committed(offset_reset_strategy)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """Return the offsets of the first records at or after a time, or the end of the log.

        Args:
            timestamp: Milliseconds since 1970-01-01 UTC.

        >>> from firesteel.datastream.connectors.kafka import KafkaOffsetsInitializer
        >>> offsets = KafkaOffsetsInitializer.timestamp(1_700_000_000_000)
        """
        return _SinceTimestamp(timestamp)

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """Return the offsets of the oldest records."""
        return _Earliest()

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Return the ends of the log at the start of the job."""
        return _Latest()

    @staticmethod
    def offsets(
        offsets: dict[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """Return given offsets.

        Other partitions start at their committed offsets, and without one as the strategy says.

        Args:
            offsets: Offsets by partition.
            offset_reset_strategy: The strategy for partitions without an offset, and for offsets
                that the log does not have.

        >>> from firesteel.datastream.connectors.kafka import (
        ...     KafkaOffsetsInitializer,
        ...     KafkaTopicPartition,
        ... )
        >>> offsets = KafkaOffsetsInitializer.offsets({KafkaTopicPartition("clicks", 0): 42})
        """
        return _Named(offsets, offset_reset_strategy)

    @abstractmethod
    @public_evolving
    def resolve(
        self, partitions: Collection[KafkaTopicPartition], cluster: KafkaCluster
    ) -> Offsets:
        """Return an offset for each partition. Called in the driver. Not in PyFlink.

        Args:
            partitions: The partitions.
            cluster: Answers questions about the log and committed offsets.

        >>> from firesteel.datastream.connectors.kafka import (
        ...     KafkaOffsetsInitializer,
        ...     KafkaTopicPartition,
        ... )
        >>> class EmptyCluster:
        ...     def earliest(self, partitions):
        ...         return dict.fromkeys(partitions, 0)
        >>> partition = KafkaTopicPartition("clicks", 0)
        >>> KafkaOffsetsInitializer.earliest().resolve([partition], EmptyCluster())
        {KafkaTopicPartition(topic='clicks', partition=0): 0}
        """

    @public_evolving
    def starting_offsets(
        self, partitions: Collection[KafkaTopicPartition], cluster: KafkaCluster
    ) -> Offsets:
        """Return an offset for each partition that the log has now. Not in PyFlink.

        Args:
            partitions: The partitions.
            cluster: Answers questions about the log and committed offsets.

        >>> from firesteel.datastream.connectors.kafka import (
        ...     KafkaOffsetsInitializer,
        ...     KafkaTopicPartition,
        ... )
        >>> class SmallCluster:
        ...     def earliest(self, partitions):
        ...         return dict.fromkeys(partitions, 10)
        ...     def latest(self, partitions):
        ...         return dict.fromkeys(partitions, 20)
        ...     def committed(self, partitions):
        ...         return {}
        >>> partition = KafkaTopicPartition("clicks", 0)
        >>> offsets = KafkaOffsetsInitializer.offsets({partition: 5})
        >>> offsets.starting_offsets([partition], SmallCluster())
        {KafkaTopicPartition(topic='clicks', partition=0): 10}
        """
        return self.resolve(partitions, cluster)


class _Earliest(KafkaOffsetsInitializer):
    resolves_again = True

    def resolve(
        self, partitions: Collection[KafkaTopicPartition], cluster: KafkaCluster
    ) -> Offsets:
        return cluster.earliest(partitions)


class _Latest(KafkaOffsetsInitializer):
    def resolve(
        self, partitions: Collection[KafkaTopicPartition], cluster: KafkaCluster
    ) -> Offsets:
        return cluster.latest(partitions)


class _SinceTimestamp(KafkaOffsetsInitializer):
    def __init__(self, timestamp: int) -> None:
        if timestamp < 0:
            raise ValueError(f"A timestamp must not be negative, got {timestamp}")
        self._timestamp = timestamp

    def resolve(
        self, partitions: Collection[KafkaTopicPartition], cluster: KafkaCluster
    ) -> Offsets:
        # The ends come first, so that a record that is written meanwhile is not skipped.
        ends = cluster.latest(partitions)
        return ends | cluster.first_since(self._timestamp, partitions)


class _Named(KafkaOffsetsInitializer):
    """Offsets from the program, which the log may not have."""

    def __init__(
        self, offsets: Mapping[KafkaTopicPartition, int], strategy: KafkaOffsetResetStrategy
    ) -> None:
        for partition, offset in offsets.items():
            if offset < 0:
                raise ValueError(
                    f"The offset of {partition} must not be negative, got {offset}. Use "
                    "KafkaOffsetsInitializer.earliest() or latest() for the ends of a partition."
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
                f"the program starts at offset {offsets[partition]}, but the log has offsets "
                f"{first[partition]} to {end[partition]}. Use a different offset, or a "
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
