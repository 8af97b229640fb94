"""Reads the partitions of a subtask in a slot, with one client of librdkafka for all of them."""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from firesteel.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    SimpleStringSchema,
)
from firesteel.connectors.base import SourceReader, SourceSplit
from firesteel.connectors.kafka.cluster import client_log
from firesteel.connectors.kafka.errors import (
    KafkaReadError,
    KafkaUnreachableError,
    OffsetOutOfRangeError,
    listed,
)
from firesteel.connectors.kafka.topic_partition import KafkaTopicPartition

__all__ = ["KafkaPartitionReader"]

_LOG = logging.getLogger(__name__)

# The wait for a partition that has not reached its end yet, and therefore has records soon.
_WAIT_SECONDS = 0.1
_READ_DELAY_SECONDS = 0.05

# Errors that do not go away.
_FINAL_ERRORS = {
    KafkaError._AUTHENTICATION,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}

# Called for whole batches.
_value, _offset, _error = Message.value, Message.offset, Message.error
_topic, _partition, _timestamp = Message.topic, Message.partition, Message.timestamp
_second = itemgetter(1)

_Place = tuple[str | None, int | None]


@dataclass(slots=True)
class _Partition:
    """``position`` is the offset of the next record to hand out."""

    split: SourceSplit
    place: KafkaTopicPartition
    position: int
    stop: int | None


@dataclass(slots=True)
class _Fetched:
    """The records of one partition in a batch.

    ``end`` is the offset at which the partition ends at the moment, if the batch reaches it.
    """

    messages: list[Message] = field(default_factory=list)
    end: int | None = None


class KafkaPartitionReader(SourceReader):
    """Reads partitions side by side.

    Positions count the records returned, and not those that the client has fetched ahead. A new
    reader therefore continues exactly at the positions of a snapshot.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        schema: DeserializationSchema,
        *,
        timeout: float = 60.0,
    ) -> None:
        """Create a reader. It connects when it gets its first split.

        Args:
            properties: Properties of librdkafka.
            schema: Makes records of values.
            timeout: The longest time without an answer while a bounded partition has records left.
        """
        self._properties = properties
        self._deserialize = schema.deserialize
        self._deserialize_all = _deserializer_of_all(schema)
        # These two make a record of every value.
        self._may_skip = type(schema) not in (SimpleStringSchema, ByteArraySchema)
        self._timeout = timeout
        self._consumer: Consumer | None = None
        self._partitions: dict[_Place, _Partition] = {}
        # The partitions that have never reached their end.
        self._behind: set[_Place] = set()
        self._fetched: deque[tuple[_Place, _Fetched]] = deque()
        self._paused: set[_Place] = set()
        self._interrupted = False
        self._silent_since: float | None = None
        self._trouble = "no answer"
        self._failure: str | None = None
        self._current: str | None = None
        self._timestamps: list[int] | None = None

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        added = []
        for split in splits:
            properties = split.properties
            topic, number, stop = properties["topic"], properties["partition"], properties["stop"]
            position = properties["start"] if split.position is None else split.position
            if stop is not None and position >= stop:
                continue
            place = KafkaTopicPartition(topic, number)
            self._partitions[topic, number] = _Partition(split, place, position, stop)
            self._behind.add((topic, number))
            added.append(TopicPartition(topic, number, position))
        if added:
            self._client().incremental_assign(added)

    def read(self, limit: int) -> list[Any]:
        if limit <= 0 or not self._partitions:
            return []
        self._interrupted = False
        deadline = time.monotonic() + _WAIT_SECONDS
        while (taken := self._take()) or self._fetch(limit):
            if taken is None:
                continue
            place, fetched = taken
            if len(fetched.messages) > limit:
                self._fetched.appendleft((place, _Fetched(fetched.messages[limit:], fetched.end)))
                fetched = _Fetched(fetched.messages[:limit])
            values = self._hand_out(place, fetched)
            if values:
                return values
            if time.monotonic() > deadline:
                # Many records that the schema skips must not delay an epoch.
                self._interrupted = True
                break
        return []

    def timestamps(self) -> list[int] | None:
        return self._timestamps

    def current_split(self) -> str | None:
        return self._current

    def snapshot_splits(self) -> list[SourceSplit]:
        return [one.split.at(one.position) for one in self._partitions.values()]

    def remove_splits(self, split_ids: Collection[str]) -> None:
        """Forget splits without reading the rest of them. Not in PyFlink.

        Args:
            split_ids: The splits. Others than those of this reader have no effect.
        """
        removed = {
            place: one for place, one in self._partitions.items() if one.split.split_id in split_ids
        }
        for place, one in removed.items():
            self._end(place, one)
        self._fetched = deque((place, one) for place, one in self._fetched if place not in removed)

    def pause_or_resume_splits(
        self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]
    ) -> None:
        paused = self._places(splits_to_pause)
        resumed = self._places(splits_to_resume)
        self._paused = (self._paused | set(paused)) - set(resumed)
        # The client later continues after the records that it has returned. Those of paused
        # partitions wait in this reader.
        self._client().pause(list(paused.values()))
        self._client().resume(list(resumed.values()))
        self._silent_since = None

    def next_read_delay(self) -> float:
        return 0.0 if self._interrupted else _READ_DELAY_SECONDS

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _take(self) -> tuple[_Place, _Fetched] | None:
        """Return the oldest records of a partition that is not paused."""
        for index, (place, _) in enumerate(self._fetched):
            if place not in self._paused:
                taken = self._fetched[index]
                del self._fetched[index]
                return taken
        return None

    def _places(self, split_ids: Collection[str]) -> dict[_Place, TopicPartition]:
        """Return the partitions of those splits that have not ended."""
        return {
            place: TopicPartition(one.place.topic, one.place.partition)
            for place, one in self._partitions.items()
            if one.split.split_id in split_ids
        }

    # From Kafka

    def _client(self) -> Consumer:
        if self._consumer is None:
            config = {**self._properties, "error_cb": self._note}
            self._consumer = Consumer(config, logger=client_log())
        return self._consumer

    def _fetch(self, limit: int) -> bool:
        """Take the records that the client has. Return False if it has none at the moment."""
        consumer = self._client()
        messages = consumer.consume(limit, 0.0)
        if not messages and self._behind - self._paused:
            # A request for more than one record would wait for all of them.
            messages = consumer.consume(1, _WAIT_SECONDS)
            if messages and limit > 1:
                messages += consumer.consume(limit - 1, 0.0)
        if self._failure is not None:
            raise KafkaUnreachableError(
                self._properties["bootstrap.servers"], "asked for records", self._failure
            )
        if not messages:
            self._check_silence()
            return False
        self._silent_since = None
        self._sort(messages)
        return True

    def _sort(self, messages: list[Message]) -> None:
        topics, numbers = list(map(_topic, messages)), list(map(_partition, messages))
        place = topics[0], numbers[0]
        alone = topics.count(place[0]) == numbers.count(place[1]) == len(messages)
        if alone and not any(map(_error, messages)):
            self._fetched.append((place, _Fetched(messages)))
            return
        by_place: dict[_Place, _Fetched] = {}
        for message in messages:
            place = message.topic(), message.partition()
            error = message.error()
            if error is None:
                by_place.setdefault(place, _Fetched()).messages.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                by_place.setdefault(place, _Fetched()).end = message.offset()
            else:
                self._refuse(place, error)
        self._fetched.extend(by_place.items())

    def _refuse(self, place: _Place, error: KafkaError) -> None:
        """Raise the error of a partition. librdkafka has already retried where that helps."""
        partition = self._partitions.get(place)
        if partition is None:
            _LOG.warning("Kafka: %s", error)
            return
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise OffsetOutOfRangeError(
                partition.place,
                f"the log has no offset {partition.position}: {error.str()}. Kafka has deleted records "
                "that were not read, or has a new topic under the same name. To continue without "
                "them, set the property auto.offset.reset to earliest or latest.",
            )
        raise KafkaReadError(partition.place, error.str())

    def _note(self, error: KafkaError) -> None:
        """Remember an error of the client as a whole. Most of these go away."""
        self._trouble = error.str()
        if error.fatal() or error.code() in _FINAL_ERRORS:
            self._failure = self._trouble

    def _check_silence(self) -> None:
        """Raise if records that exist do not arrive. A wait for future records has no limit."""
        now = time.monotonic()
        if self._silent_since is None:
            self._silent_since = now
        if now - self._silent_since < self._timeout:
            return
        missing = [
            one.place
            for place, one in self._partitions.items()
            if one.stop is not None and place in self._behind - self._paused
        ]
        if missing:
            raise KafkaUnreachableError(
                self._properties["bootstrap.servers"],
                f"asked for the rest of {listed(missing)}",
                self._trouble,
            )

    # To the job

    def _hand_out(self, place: _Place, fetched: _Fetched) -> list[Any]:
        partition = self._partitions.get(place)
        if partition is None:  # it has ended
            return []
        values: list[Any] = []
        if fetched.messages:
            values = self._records_of(partition, fetched.messages)
        if fetched.end is not None:
            # Markers of transactions have offsets, too, but are not records.
            partition.position = max(partition.position, fetched.end)
            self._behind.discard(place)
        if partition.stop is not None and partition.position >= partition.stop:
            self._end(place, partition)
        return values

    def _records_of(self, partition: _Partition, messages: list[Message]) -> list[Any]:
        next_position = messages[-1].offset() + 1  # type: ignore[operator]  # a record has one
        stop = partition.stop
        if stop is not None and next_position > stop:
            del messages[bisect_left(messages, stop, key=_offset) :]  # type: ignore[arg-type]  # a record has one
            next_position = stop
        raw = list(map(_value, messages))
        if None in raw:  # deletions, in compacted topics
            messages = [message for message in messages if message.value() is not None]
            raw = list(map(_value, messages))
        try:
            values: list[Any] = self._deserialize_all(raw)  # type: ignore[arg-type]  # no None
        except Exception as error:
            self._name_record(error, partition.place, messages)
            raise
        stamps = list(map(_second, map(_timestamp, messages)))
        if self._may_skip:
            kept = [i for i, value in enumerate(values) if value is not None]
            if len(kept) < len(values):
                values = [values[i] for i in kept]
                stamps = [stamps[i] for i in kept]
        partition.position = next_position
        self._current = partition.split.split_id
        self._timestamps = stamps
        return values

    def _name_record(
        self, error: Exception, place: KafkaTopicPartition, messages: list[Message]
    ) -> None:
        """Find the record that the schema does not accept, and name it in the error."""
        for message in messages:
            try:
                self._deserialize(message.value())  # type: ignore[arg-type]
            except Exception:  # noqa: BLE001 - the user's schema may raise anything
                error.add_note(
                    f"The record is at offset {message.offset()} of partition {place.partition} of "
                    f"topic {place.topic!r}."
                )
                return

    def _end(self, place: _Place, partition: _Partition) -> None:
        del self._partitions[place]
        self._behind.discard(place)
        self._paused.discard(place)
        self._client().incremental_unassign(
            [TopicPartition(partition.place.topic, partition.place.partition)]
        )


def _deserializer_of_all(schema: DeserializationSchema) -> Callable[[list[bytes]], list[Any]]:
    """Return a function for many values. Text and bytes need no call of Python for each of them."""
    deserialize = schema.deserialize
    if type(schema) is ByteArraySchema:
        return lambda values: values
    if type(schema) is not SimpleStringSchema or schema.charset != "utf-8":
        return lambda values: list(map(deserialize, values))

    def texts(values: list[bytes]) -> list[Any]:
        try:
            return list(map(bytes.decode, values))
        except UnicodeDecodeError:
            # The schema replaces bytes that are no text.
            return list(map(deserialize, values))

    return texts
