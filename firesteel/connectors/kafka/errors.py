"""Errors of the Kafka connector. They name the topic and the partition."""

from __future__ import annotations

from collections.abc import Iterable

from firesteel.connectors.kafka.topic_partition import KafkaTopicPartition
from firesteel.errors import FiresteelError

__all__ = [
    "KafkaAuthenticationError",
    "KafkaAuthorizationError",
    "KafkaReadError",
    "KafkaUnreachableError",
    "KafkaWriteError",
    "NoCommittedOffsetError",
    "OffsetOutOfRangeError",
    "TopicRecreatedError",
    "TransactionLostError",
    "UnknownTopicError",
    "listed",
    "untrusted_certificate",
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


class KafkaAuthenticationError(FiresteelError, ConnectionError):
    """A broker does not accept the user, or the client does not trust the broker."""

    def __init__(self, server: str, reason: str, settings: str) -> None:
        super().__init__(f"Kafka at {server} cannot be used: {reason}. Check {settings}.")
        self.server = server
        self.reason = reason
        self.settings = settings


class KafkaAuthorizationError(FiresteelError, PermissionError):
    """The user may not do something with a topic or a transactional id."""

    def __init__(self, servers: str, what: str) -> None:
        super().__init__(
            f"Kafka at {servers} refused when Firesteel {what}: the user has no permission. A sink "
            "needs the ACLs WRITE on its topics and, with EXACTLY_ONCE, WRITE on the transactional "
            "ids with the prefix of set_transactional_id_prefix."
        )
        self.servers = servers
        self.what = what


class KafkaWriteError(FiresteelError, RuntimeError):
    """Kafka does not take a record."""

    def __init__(self, topic: str, reason: str, remedy: str = "") -> None:
        super().__init__(f"Topic {topic!r}: {reason}.{remedy and ' ' + remedy}")
        self.topic = topic
        self.reason = reason
        self.remedy = remedy


_WHY_LOST = {
    47: "a newer producer uses its transactional id",
    48: "it is not open any more",
    49: "Kafka has forgotten its transactional id",
    90: "a newer producer uses its transactional id, or it took too long",
}


class TransactionLostError(FiresteelError, RuntimeError):
    """A transaction of a checkpoint cannot be committed, so its records are lost."""

    def __init__(self, what: str, code: int) -> None:
        why = _WHY_LOST.get(code, f"error {code} of Kafka's protocol")
        super().__init__(
            f"Kafka refused when Firesteel {what}: {why}. Kafka aborts a transaction after "
            "transaction.timeout.ms, which must be longer than two checkpoints and a restart, and "
            "at most the broker's transaction.max.timeout.ms. Each sink and each job needs its own "
            "set_transactional_id_prefix. To continue without these records, restore with the "
            "property ignore.failures.after.transaction.timeout set to true."
        )
        self.what = what
        self.code = code


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


def untrusted_certificate(servers: str, reason: str) -> KafkaAuthenticationError:
    """Return the error for a broker whose certificate is not trusted."""
    return KafkaAuthenticationError(
        servers,
        f"its certificate is not trusted: {reason}",
        "ssl.truststore.location (or ssl.ca.location) and ssl.endpoint.identification.algorithm",
    )


def listed(partitions: Iterable[KafkaTopicPartition], most: int = 5) -> str:
    """Return the names of the partitions as text, shortened after ``most`` of them."""
    names = [str(partition) for partition in sorted(partitions)]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
