"""KafkaTopicPartition, a partition of a topic."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KafkaTopicPartition"]


@dataclass(frozen=True, slots=True, order=True)
class KafkaTopicPartition:
    """A partition of a topic, as a key of dicts and sets.

    Args:
        topic: The name of the topic.
        partition: The number of the partition, from 0.

    >>> print(KafkaTopicPartition("clicks", 3))
    clicks-3
    """

    topic: str
    partition: int

    def __post_init__(self) -> None:
        if self.partition < 0:
            raise ValueError(f"A partition must not be negative, got {self.partition}")

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
