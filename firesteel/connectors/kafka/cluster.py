"""Requests of the driver to a Kafka cluster: topics, offsets, and the commits of a group."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, as its manual says
    AdminClient,
    OffsetSpec,
)

from firesteel.connectors.kafka.errors import (
    KafkaReadError,
    KafkaUnreachableError,
    UnknownTopicError,
)
from firesteel.connectors.kafka.topic_partition import KafkaTopicPartition

_LOG = logging.getLogger(__name__)

_UNREACHABLE = {
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
}
# Topics of Kafka itself.
_INTERNAL = {"__consumer_offsets", "__transaction_state", "__share_group_state"}
# The id of topics on brokers that have none.
_NO_ID = "A" * 22
# The time that the end of a job waits for the last commit.
_LAST_COMMIT_SECONDS = 5.0

Offsets = dict[KafkaTopicPartition, int]


class KafkaCluster:
    """A client of the brokers. All requests wait for their answers, except a commit."""

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        group: str = "",
        read_committed: bool = False,
        timeout: float = 60.0,
    ) -> None:
        """Create a client. It connects at the first request.

        Args:
            properties: Properties of librdkafka.
            group: The consumer group.
            read_committed: Whether offsets exclude open transactions.
            timeout: The longest time to wait for an answer, in seconds.
        """
        self.group = group
        self._servers = properties["bootstrap.servers"]
        self._isolation = (
            IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
        )
        self._timeout = timeout
        self._last_error = "no answer in time"
        self._commit: Future[Any] | None = None
        self._commit_later: Offsets = {}
        config: dict[str, Any] = {**properties, "error_cb": self._note}
        self._admin = AdminClient(config, logger=client_log())

    def topics(self, timeout: float | None = None) -> dict[str, list[int]]:
        """Return the partitions of all topics that this user may see, except those of Kafka itself."""
        try:
            metadata = self._admin.list_topics(timeout=timeout or self._timeout)
        except KafkaException as error:
            raise self._explained(error, "asked for its topics") from error
        return {
            name: sorted(topic.partitions)
            for name, topic in metadata.topics.items()
            if name not in _INTERNAL
        }

    def topic_ids(self, names: Collection[str], timeout: float | None = None) -> dict[str, str]:
        """Return the ids of those topics that exist. A topic that is created again has a new one.

        Brokers before version 2.8 have no ids.
        """
        if not names:
            return {}
        what = "asked for the ids of topics"
        timeout = timeout or self._timeout
        try:
            answers = self._admin.describe_topics(
                TopicCollection(list(names)), request_timeout=timeout
            )
        except KafkaException as error:
            raise self._explained(error, what) from error
        ids: dict[str, str] = {}
        for name, answer in answers.items():
            try:
                topic_id = str(self._wait(answer, what).topic_id)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self._explained(error, what) from error
            else:
                if topic_id != _NO_ID:
                    ids[name] = topic_id
        return ids

    def earliest(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        return self._offsets(partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def latest(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """Return the offset of the next record, or that of the first record of an open transaction."""
        return self._offsets(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def first_since(self, timestamp: int, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """Return the offset of the first record at ``timestamp`` (ms) or later, if there is one."""
        found = self._offsets(partitions, OffsetSpec.for_timestamp(timestamp))
        return {partition: offset for partition, offset in found.items() if offset >= 0}

    def committed(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """Return the offsets that the group has committed."""
        if not partitions or not self.group:
            return {}
        request = ConsumerGroupTopicPartitions(self.group, [_theirs(p) for p in partitions])
        what = f"asked for the offsets of group {self.group!r}"
        try:
            answer = self._admin.list_consumer_group_offsets(
                [request], request_timeout=self._timeout
            )
            found = self._wait(answer[self.group], what).topic_partitions
        except KafkaException as error:
            raise self._explained(error, what) from error
        return {_ours(one): one.offset for one in found if one.offset >= 0}

    def commit(self, offsets: Offsets) -> None:
        """Commit the offsets of the job for the group. The call does not wait; failures are logged.

        While one commit is in progress, only the newest of the following ones is kept.
        """
        self._commit_later = offsets
        if self._commit is None or self._commit.done():
            self._commit_now()

    def close(self) -> None:
        """Finish the last commit, within a limited time."""
        self._wait_for_commit()
        if self._commit_later:
            self._commit_now()
            self._wait_for_commit()
        self._admin.poll(0)

    def _commit_now(self) -> None:
        offsets, self._commit_later = self._commit_later, {}
        if not offsets:
            return
        theirs = [_theirs(partition, offset) for partition, offset in offsets.items()]
        request = ConsumerGroupTopicPartitions(self.group, theirs)
        try:
            answer = self._admin.alter_consumer_group_offsets(
                [request], request_timeout=self._timeout
            )
        except KafkaException as error:
            self._commit_failed(error)
            return
        self._commit = answer[self.group]
        self._commit.add_done_callback(self._check_commit)

    def _wait_for_commit(self) -> None:
        if self._commit is None:
            return
        try:
            self._commit.exception(_LAST_COMMIT_SECONDS)
        except FutureTimeoutError:
            self._commit_failed("no answer in time")

    def _check_commit(self, commit: Future[Any]) -> None:
        error = commit.exception()
        if error is not None:
            self._commit_failed(error)
            return
        for one in commit.result().topic_partitions:
            if one.error is not None:
                self._commit_failed(one.error)
                return

    def _commit_failed(self, error: object) -> None:
        # The job does not need these offsets, because its checkpoints contain them.
        _LOG.warning("Offsets of group %r could not be committed: %s", self.group, error)

    def _offsets(self, partitions: Collection[KafkaTopicPartition], spec: OffsetSpec) -> Offsets:
        if not partitions:
            return {}
        what = "asked for offsets"
        try:
            answers = self._admin.list_offsets(
                {_theirs(p): spec for p in partitions},
                isolation_level=self._isolation,
                request_timeout=self._timeout,
            )
        except KafkaException as error:
            raise self._explained(error, what) from error
        offsets: Offsets = {}
        for theirs, answer in answers.items():
            partition = _ours(theirs)
            try:
                offsets[partition] = self._wait(answer, what).offset
            except KafkaException as error:
                raise self._explained(error, what, partition) from error
        return offsets

    def _wait(self, answer: Future[Any], what: str) -> Any:
        try:
            return answer.result(self._timeout + 1.0)
        except FutureTimeoutError:
            raise KafkaUnreachableError(self._servers, what, self._last_error) from None

    def _explained(
        self, error: KafkaException, what: str, partition: KafkaTopicPartition | None = None
    ) -> Exception:
        self._admin.poll(0)  # lets librdkafka call error_cb and write to the log
        reason: KafkaError = error.args[0]
        if reason.code() in _UNREACHABLE:
            return KafkaUnreachableError(self._servers, what, self._last_error)
        if partition is None:
            return KafkaUnreachableError(self._servers, what, reason.str())
        if reason.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._NOENT):
            return UnknownTopicError(
                f"Kafka has no partition {partition}, or no leader for it.", [str(partition)]
            )
        return KafkaReadError(partition, reason.str())

    def _note(self, error: KafkaError) -> None:
        self._last_error = error.str()


def _theirs(partition: KafkaTopicPartition, offset: int | None = None) -> TopicPartition:
    if offset is None:
        return TopicPartition(partition.topic, partition.partition)
    return TopicPartition(partition.topic, partition.partition, offset)


def _ours(partition: TopicPartition) -> KafkaTopicPartition:
    return KafkaTopicPartition(partition.topic, partition.partition)


_REPEAT_SECONDS = 30.0


class _Seldom(logging.Filter):
    """Drops repeated lines: librdkafka tries an unreachable broker every few milliseconds."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, text = time.monotonic(), record.getMessage()
        if now - self._said.get(text, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return False
        self._said = {t: at for t, at in self._said.items() if now - at < _REPEAT_SECONDS}
        self._said[text] = now
        return True


def client_log() -> logging.Logger:
    """Return the logger of all clients of this process."""
    log = logging.getLogger(__name__)
    if not log.filters:
        log.addFilter(_Seldom())
    return log
