"""KafkaTopicPartition: one partition of one topic."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KafkaTopicPartition"]


@dataclass(frozen=True, slots=True, order=True)
class KafkaTopicPartition:
    """A key of dictionaries and sets.

    >>> print(KafkaTopicPartition("clicks", 3))
    clicks-3
    """

    topic: str
    partition: int

    def __post_init__(self) -> None:
        if self.partition < 0:
            raise ValueError(f"A partition is not negative, got {self.partition}")

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
