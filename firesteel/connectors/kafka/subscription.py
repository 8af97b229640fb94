"""Subscriptions: the partitions of named topics, of topics by pattern, or named partitions."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from firesteel.connectors.kafka.errors import UnknownTopicError, listed
from firesteel.connectors.kafka.topic_partition import KafkaTopicPartition

__all__ = ["PartitionSet", "Subscription", "TopicList", "TopicPattern"]

Topics = Mapping[str, Sequence[int]]
"""The partitions of each topic of the cluster."""


class Subscription(ABC):
    """Selects partitions. It is applied again when topics may have changed."""

    @abstractmethod
    def select(self, topics: Topics) -> list[KafkaTopicPartition]:
        """Return the partitions to read. A named topic or partition that does not exist is an error."""


class TopicList(Subscription):
    """All partitions of named topics. All of the topics must exist."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(dict.fromkeys(names))

    def select(self, topics: Topics) -> list[KafkaTopicPartition]:
        missing = [name for name in self._names if not topics.get(name)]
        if missing:
            raise _unknown_topics(missing, topics)
        return [
            KafkaTopicPartition(name, partition)
            for name in self._names
            for partition in topics[name]
        ]

    def __repr__(self) -> str:
        return f"topics {', '.join(self._names)}"


class TopicPattern(Subscription):
    """All partitions of the topics whose whole names match, as in Flink. Topics may appear later."""

    def __init__(self, pattern: str) -> None:
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise ValueError(
                f"The topic pattern {pattern!r} is not a valid regular expression: {error}"
            ) from error

    def select(self, topics: Topics) -> list[KafkaTopicPartition]:
        return [
            KafkaTopicPartition(name, partition)
            for name in sorted(topics)
            if self._pattern.fullmatch(name)
            for partition in topics[name]
        ]

    def __repr__(self) -> str:
        return f"topics like {self._pattern.pattern}"


class PartitionSet(Subscription):
    """Named partitions. All of them must exist."""

    def __init__(self, partitions: Sequence[KafkaTopicPartition]) -> None:
        self._partitions = tuple(sorted(set(partitions)))

    def select(self, topics: Topics) -> list[KafkaTopicPartition]:
        unknown = sorted({p.topic for p in self._partitions if not topics.get(p.topic)})
        if unknown:
            raise _unknown_topics(unknown, topics)
        missing = [p for p in self._partitions if p.partition not in topics[p.topic]]
        if missing:
            counts = {p.topic: len(topics[p.topic]) for p in missing}
            raise UnknownTopicError(
                f"There is no partition {listed(missing)}: "
                + ", ".join(f"topic {topic!r} has {count}" for topic, count in counts.items())
                + ", numbered from 0.",
                map(str, missing),
            )
        return list(self._partitions)

    def __repr__(self) -> str:
        return f"partitions {listed(self._partitions)}"


def _unknown_topics(missing: Sequence[str], topics: Topics) -> UnknownTopicError:
    alike = {
        name: close[0] for name in missing if (close := get_close_matches(name, list(topics), n=1))
    }
    hint = "".join(f" Did you mean {alike[name]!r} instead of {name!r}?" for name in alike)
    names = ", ".join(map(repr, missing))
    return UnknownTopicError(
        f"Kafka has no topic {names}, or does not show it to this user.{hint} Create it before the "
        "job starts, or use set_topic_pattern for topics that appear later.",
        missing,
    )
