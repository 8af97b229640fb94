"""Errors of the Kafka connector. They name the topic and the partition."""

from __future__ import annotations

from collections.abc import Iterable

from firesteel.connectors.kafka.topic_partition import KafkaTopicPartition
from firesteel.errors import FiresteelError

__all__ = [
    "KafkaReadError",
    "KafkaUnreachableError",
    "NoCommittedOffsetError",
    "OffsetOutOfRangeError",
    "TopicRecreatedError",
    "UnknownTopicError",
    "listed",
]


class KafkaReadError(FiresteelError, RuntimeError):
    """Kafka does not return the records of a partition."""

    def __init__(self, partition: KafkaTopicPartition, reason: str) -> None:
        super().__init__(f"Partition {partition.partition} of topic {partition.topic!r}: {reason}")
        self.topic = partition.topic
        self.partition = partition.partition


class OffsetOutOfRangeError(KafkaReadError):
    """The log does not have the records at an offset, and no reset strategy is set."""


class KafkaUnreachableError(FiresteelError, ConnectionError):
    """No broker answers."""

    def __init__(self, servers: str, what: str, reason: str) -> None:
        super().__init__(
            f"Kafka at {servers} did not answer when {what} ({reason}). Check bootstrap.servers, "
            "the network and the security settings; default.api.timeout.ms is the time to wait."
        )
        self.servers = servers
        self.what = what
        self.reason = reason


class UnknownTopicError(FiresteelError, LookupError):
    """A topic or partition that was named does not exist."""

    def __init__(self, message: str, missing: Iterable[str]) -> None:
        super().__init__(message)
        self.missing = list(missing)


class TopicRecreatedError(FiresteelError, LookupError):
    """A topic was deleted and created again, so that positions in it mean nothing."""

    def __init__(self, topics: Iterable[str]) -> None:
        self.topics = sorted(topics)
        super().__init__(
            f"Kafka has a new topic under the name {', '.join(map(repr, self.topics))}: the one that "
            "this job was reading was deleted. Offsets of the old topic would skip records of the new "
            "one. Start the job without its checkpoint, or with a new uid for the source."
        )


class NoCommittedOffsetError(FiresteelError, LookupError):
    """Some partitions have no offset to start from, and no reset strategy is set."""

    def __init__(self, group: str, partitions: Iterable[KafkaTopicPartition]) -> None:
        partitions = list(partitions)
        why = f"the group {group!r} has not committed one" if group else "no group is set"
        super().__init__(
            f"There is no offset for {listed(partitions)}: the program does not set one, and "
            f"{why}. Set an offset, or give KafkaOffsetsInitializer a KafkaOffsetResetStrategy "
            "other than NONE."
        )
        self.group = group
        self.partitions = [str(partition) for partition in partitions]


def listed(partitions: Iterable[KafkaTopicPartition], most: int = 5) -> str:
    """Return the names of the partitions as text, shortened after ``most`` of them."""
    names = [str(partition) for partition in sorted(partitions)]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
