"""What can go wrong with Kafka, in words that name topic and partition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from firesteel.connectors.kafka.topic_partition import KafkaTopicPartition
from firesteel.errors import FiresteelError

__all__ = [
    "KafkaReadError",
    "KafkaUnreachableError",
    "NoCommittedOffsetError",
    "OffsetOutOfRangeError",
    "UnknownTopicError",
    "listed",
]


class KafkaReadError(FiresteelError, RuntimeError):
    """Kafka refuses to give the records of a partition."""

    def __init__(self, partition: KafkaTopicPartition, reason: str) -> None:
        super().__init__(f"Partition {partition.partition} of topic {partition.topic!r}: {reason}")
        self.topic = partition.topic
        self.partition = partition.partition


class OffsetOutOfRangeError(KafkaReadError):
    """Records that are to be read are not in the log (any more), and nothing says what to do then."""


class KafkaUnreachableError(FiresteelError, ConnectionError):
    """No broker answers."""

    def __init__(self, servers: str, what: str, reason: str) -> None:
        super().__init__(
            f"Kafka at {servers} did not answer when {what} ({reason}). Check bootstrap.servers, "
            "the network and the security settings; default.api.timeout.ms says how long to wait."
        )
        self.servers = servers
        self.what = what
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        # OSError keeps its arguments in a place of its own, which the general way would lose.
        return type(self), (self.servers, self.what, self.reason)


class UnknownTopicError(FiresteelError, LookupError):
    """A topic or partition that was named does not exist."""

    def __init__(self, message: str, missing: Iterable[str]) -> None:
        super().__init__(message)
        self.missing = list(missing)


class NoCommittedOffsetError(FiresteelError, LookupError):
    """Some partitions have no offset to start from, and nothing says what to do then."""

    def __init__(self, group: str, partitions: Iterable[KafkaTopicPartition]) -> None:
        partitions = list(partitions)
        why = f"the group {group!r} has committed none" if group else "no group is set"
        super().__init__(
            f"There is no offset for {listed(partitions)}: none is named, and {why}. Name one, or give "
            "KafkaOffsetsInitializer a KafkaOffsetResetStrategy other than NONE."
        )
        self.group = group
        self.partitions = [str(partition) for partition in partitions]


def listed(partitions: Iterable[KafkaTopicPartition], most: int = 5) -> str:
    """The partitions as text, not more than a few of them."""
    names = [str(partition) for partition in sorted(partitions)]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
