"""Writers of a KafkaSink: librdkafka's queue, and with EXACTLY_ONCE a transaction per checkpoint."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from firesteel.common.serialization import (
    ByteArraySchema,
    SerializationSchema,
    SimpleStringSchema,
)
from firesteel.connectors.base import SinkWriter, WriteContext, WriterContext
from firesteel.connectors.kafka.cluster import client_log
from firesteel.connectors.kafka.errors import (
    KafkaAuthenticationError,
    KafkaAuthorizationError,
    KafkaUnreachableError,
    KafkaWriteError,
    TransactionLostError,
    UnknownTopicError,
    untrusted_certificate,
)
from firesteel.connectors.kafka.record_serialization import KafkaRecordSerializationSchema
from firesteel.connectors.kafka.transactions import (
    KafkaTransactions,
    TransactionalIds,
    id_stem,
    now_number,
)
from firesteel.errors import ConfigurationError
from firesteel.usercode.failures import explaining

__all__ = ["KafkaWriter", "TransactionalKafkaWriter"]

_log = logging.getLogger("firesteel")

# librdkafka chooses the partition.
_ANY_PARTITION = -1
# Calls wait in steps, so that a canceled task ends soon. The client divides waits of 200 ms or more
# itself, and does not stop at the exception of a fatal error between the parts: callbacks run while
# it is pending, and fail with a SystemError, or with an error that is not theirs.
_STEP_SECONDS = 0.15
_LIST_SECONDS = 0.5
_TOPIC_SECONDS = 10.0
_ABORT_SECONDS = 5.0
_RETRY_SECONDS = 0.05
# The part of its timeout after which a transaction is old.
_OLD = 0.5

# Errors of the client as a whole that do not go away.
_AUTHENTICATION = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED}
_AUTHORIZATION = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
# A broker that has ended the transaction for a newer producer answers with one of these.
_FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.INVALID_TXN_STATE,
}
_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE}
_UNKNOWN_TOPIC = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}


class KafkaWriter(SinkWriter):
    """Writes records with one producer. The brokers have them after ``flush``."""

    def __init__(
        self,
        properties: Mapping[str, str],
        schema: KafkaRecordSerializationSchema,
        *,
        timeout: float,
        flushes: bool = True,
    ) -> None:
        """Create a writer. It connects at the first record.

        Args:
            properties: Properties of librdkafka.
            schema: Makes records of Kafka.
            timeout: The longest time to wait for a topic, in seconds.
            flushes: Each epoch ends with a flush. Otherwise only the last one does.
        """
        self._properties = properties
        self._servers = properties["bootstrap.servers"]
        self._schema = schema
        self._timeout = timeout
        self._flushes = flushes
        self._producer: Producer | None = None
        self._failure: Exception | None = None
        self._trouble = "no answer in time"
        # The partitions of each topic that was written.
        self._topics: dict[str, list[int]] = {}
        self._write_all = self._choose_loop()

    def write(self, value: Any, context: WriteContext) -> None:
        timestamp = context.timestamp()
        self.write_batch([value], None if timestamp is None else [timestamp], context)

    def write_batch(
        self, values: list[Any], timestamps: list[int] | None, context: WriteContext
    ) -> None:
        if not values:
            return
        producer = self._producer or self._begin()
        self._write_all(producer, values, timestamps)
        self._poll(producer, 0)

    def flush(self, end_of_input: bool) -> None:
        if self._producer is None:
            return
        if self._flushes or end_of_input:
            self._flush(self._producer)
        else:
            self._poll(self._producer, 0)

    def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is None:
            return
        if self._flushes:
            # The records since the last epoch are written again, or belong to a canceled job.
            producer.purge()
        else:
            self._flush(producer)
        producer.flush(0)

    # Producers

    def _begin(self) -> Producer:
        """Return a producer for the next records."""
        self._producer = self._new_producer(self._properties)
        return self._producer

    def _new_producer(self, properties: Mapping[str, str]) -> Producer:
        config: dict[str, Any] = {
            **properties,
            "error_cb": self._note,
            "on_delivery": self._delivered,
            # A callback for every record costs a third of the throughput.
            "delivery.report.only.error": True,
        }
        return Producer(config, logger=client_log())

    def _flush(self, producer: Producer) -> None:
        """Wait until the brokers have all records. librdkafka gives up on each in its time."""
        waiting = 1
        while waiting:
            try:
                waiting = producer.flush(_STEP_SECONDS)
            except KafkaException as error:
                raise self._explained(error.args[0], "") from error
            self._check()

    def _poll(self, producer: Producer, seconds: float) -> None:
        """Let the client call back, and raise its errors."""
        try:
            producer.poll(seconds)
        except KafkaException as error:
            raise self._explained(error.args[0], "") from error
        self._check()

    def _refused(self, producer: Producer, error: KafkaError, topic: str) -> Exception:
        """Return the error of a record that the client does not take.

        A client that has failed as a whole tells the reason in its callbacks only.
        """
        self._poll(producer, _STEP_SECONDS if error.code() == KafkaError._FATAL else 0)
        return self._explained(error, topic)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failure is None:
            self._failure = self._explained(error, message.topic() or "")

    def _note(self, error: KafkaError) -> None:
        """Remember an error of the client as a whole. Most of these go away."""
        self._trouble = error.str()
        final = error.code() in _AUTHENTICATION | _AUTHORIZATION or _is_about_trust(error)
        if self._failure is None and (final or error.fatal()):
            self._failure = self._explained(error, "")

    def _explained(self, error: KafkaError, topic: str) -> Exception:
        code, reason = error.code(), error.str()
        if code in _AUTHENTICATION:
            return KafkaAuthenticationError(
                self._servers,
                reason,
                "sasl.mechanism and sasl.jaas.config (or sasl.username and sasl.password)",
            )
        if _is_about_trust(error):
            return untrusted_certificate(self._servers, reason)
        if code in _AUTHORIZATION:
            return KafkaAuthorizationError(self._servers, f"wrote to topic {topic!r}")
        if code in _FENCED:
            return TransactionLostError("wrote in a transaction", KafkaError.PRODUCER_FENCED)
        if code == KafkaError.INVALID_TRANSACTION_TIMEOUT:
            return ConfigurationError(
                "The brokers do not allow transactions of transaction.timeout.ms = "
                f"{self._properties['transaction.timeout.ms']}. Decrease it, or increase "
                "transaction.max.timeout.ms of the brokers.",
                key="transaction.timeout.ms",
            )
        if code in _TOO_LARGE:
            return KafkaWriteError(
                topic,
                f"a record is too large ({reason})",
                "The limits are the property max.request.size (1 MB) of the sink, and "
                "max.message.bytes of the topic or message.max.bytes of the broker.",
            )
        if code in _UNKNOWN_TOPIC:
            return self._unknown_topic(topic)
        if code == KafkaError._MSG_TIMED_OUT:
            return KafkaUnreachableError(
                self._servers,
                f"given records of topic {topic!r}, which waited for delivery.timeout.ms",
                self._trouble,
            )
        return KafkaWriteError(topic, reason)

    def _unknown_topic(self, topic: str) -> UnknownTopicError:
        return UnknownTopicError(
            f"Kafka has no topic {topic!r}, or does not show it to this user. Create the topic "
            "before the job starts, or let the brokers do so with auto.create.topics.enable.",
            [topic],
        )

    # Topics

    def _partitions(self, producer: Producer, topic: str) -> list[int]:
        """Return the partitions of a topic. The first call makes sure that it exists."""
        known = self._topics.get(topic)
        if known is None:
            known = self._topics[topic] = self._find_topic(producer, topic)
        return known

    def _find_topic(self, producer: Producer, topic: str) -> list[int]:
        deadline = time.monotonic() + self._timeout
        # Brokers that create topics on request need a moment.
        created_by = time.monotonic() + min(_TOPIC_SECONDS, self._timeout)
        while True:
            try:
                found = producer.list_topics(topic, timeout=_LIST_SECONDS).topics[topic]
            except KafkaException as error:
                # Calls ``_note`` with the errors of connections.
                self._poll(producer, 0)
                if time.monotonic() >= deadline:
                    raise KafkaUnreachableError(
                        self._servers, f"asked for topic {topic!r}", self._trouble
                    ) from error
                continue
            self._check()
            if found.error is None and found.partitions:
                return sorted(found.partitions)
            if found.error is not None and found.error.code() in _AUTHORIZATION:
                raise self._explained(found.error, topic)
            if time.monotonic() >= created_by:
                raise self._unknown_topic(topic)
            self._poll(producer, 0.1)

    # The loops over records

    def _choose_loop(self) -> Callable[[Producer, list[Any], list[int] | None], None]:
        schema = self._schema
        plain = schema.key is None and schema.partitioner is None and schema.headers is None
        if plain and isinstance(schema.topic, str) and _takes_as_is(schema.value) is not None:
            return self._write_values
        return self._write_records

    def _write_values(
        self, producer: Producer, values: list[Any], timestamps: list[int] | None
    ) -> None:
        """Write text or bytes as they are: librdkafka encodes text itself."""
        topic = self._schema.topic
        assert isinstance(topic, str)
        if topic not in self._topics:
            self._partitions(producer, topic)
        expected = _takes_as_is(self._schema.value)
        assert expected is not None
        kinds = set(map(type, values))
        if not kinds <= {expected}:
            # Raises an error that names the record, or converts a subclass.
            self._write_records(producer, values, timestamps)
            return
        produce = producer.produce
        try:
            if timestamps is None:
                for value in values:
                    try:
                        produce(topic, value)
                    except BufferError:
                        self._produce(producer, topic, value)
            else:
                for value, stamp in zip(values, timestamps, strict=True):
                    try:
                        produce(topic, value, None, _ANY_PARTITION, None, None, max(0, stamp))
                    except BufferError:
                        self._produce(producer, topic, value, timestamp=max(0, stamp))
        except KafkaException as error:
            raise self._refused(producer, error.args[0], topic) from error

    def _write_records(
        self, producer: Producer, values: list[Any], timestamps: list[int] | None
    ) -> None:
        schema = self._schema
        fixed = schema.topic if isinstance(schema.topic, str) else None
        select = None if isinstance(schema.topic, str) else schema.topic
        key_of = None if schema.key is None else schema.key.serialize
        value_of = schema.value.serialize
        partition_of, headers_of = schema.partitioner, schema.headers
        functions = [f for f in (select, key_of, partition_of, headers_of, value_of) if f]
        iterator = iter(values)
        stamps = iter(timestamps) if timestamps is not None else None
        with explaining(functions, values, iterator):
            for record in iterator:
                topic = fixed if select is None else select(record)
                partitions = self._topics.get(topic)  # type: ignore[arg-type]
                if partitions is None:
                    partitions = self._partitions(producer, _topic_name(topic))
                key = None if key_of is None else key_of(record)
                value = value_of(record)
                stamp = next(stamps) if stamps is not None else 0
                self._produce(
                    producer,
                    topic,  # type: ignore[arg-type]  # checked when it was new
                    value,
                    key,
                    _ANY_PARTITION
                    if partition_of is None
                    else _one_of(partitions, partition_of(record, key, value, topic, partitions)),
                    max(0, stamp),
                    None if headers_of is None else headers_of(record),
                )

    def _produce(
        self,
        producer: Producer,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int = _ANY_PARTITION,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        while True:
            try:
                if headers:
                    producer.produce(
                        topic, value, key, partition, None, None, timestamp, list(headers)
                    )
                else:
                    producer.produce(topic, value, key, partition, None, None, timestamp)
            except BufferError:
                # The queue is full: wait for the brokers.
                self._poll(producer, _STEP_SECONDS)
            except KafkaException as error:
                raise self._refused(producer, error.args[0], topic) from error
            else:
                return


class TransactionalKafkaWriter(KafkaWriter):
    """Writes the records between two checkpoints in one transaction of a producer of its own.

    ``prepare_commit`` leaves the transaction open, and forgets the producer. The committer, or a
    restored job, commits it by its id, producer id and epoch. The next producer is prepared in the
    background, because it takes longer than a checkpoint may.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        schema: KafkaRecordSerializationSchema,
        *,
        timeout: float,
        prefix: str,
        context: WriterContext,
        state: Any = None,
    ) -> None:
        """Create a writer.

        Args:
            properties: Properties of librdkafka.
            schema: Makes records of Kafka.
            timeout: The longest time to wait for an answer about a transaction, in seconds.
            prefix: The prefix of transactional ids.
            context: The place of the writer.
            state: The committables that a lost writer had prepared, or a list of such states.
        """
        super().__init__(properties, schema, timeout=timeout)
        self._transactions = KafkaTransactions(properties, timeout)
        self._outstanding: dict[str, dict[str, Any]] = {}
        self._restored = {one["id"] for one in _committables(state)}
        self._own_ids = re.compile(re.escape(id_stem(prefix, context.subtask_index)) + r"\d+")
        self._ids = TransactionalIds(prefix, context.subtask_index)
        self._is_checkpointed = context.checkpointed
        self._checkpoint: int | None = None
        self._epochs = 0
        # The time of each checkpoint of this writer, until one of them is complete.
        self._times: dict[int, int] | None = {}
        self._current: _Preparation | None = None
        self._begun_at = 0.0
        self._next: _Preparation | None = None
        self._prepare_next()

    def has_open_transaction(self) -> bool:
        return self._producer is not None

    def flush(self, end_of_input: bool) -> None:
        """Send the waiting records. Only ``prepare_commit`` has to wait for the brokers."""
        if self._producer is not None:
            self._poll(self._producer, 0)
        self._check()

    def begin_checkpoint(self, checkpoint_id: int) -> None:
        self._checkpoint = checkpoint_id

    def prepare_commit(self, end_of_input: bool) -> list[Any]:
        committables = []
        if self._producer is not None:
            committables.append(self._pre_commit(is_last=end_of_input))
        checkpoint, self._checkpoint = self._checkpoint, None
        if checkpoint is None:
            if self._is_checkpointed:
                # The end of the input: the next checkpoint contains the transaction.
                return committables
            # Without checkpoints the driver has confirmed the previous epoch by now.
            self.notify_checkpoint_complete(self._epochs)
            self._epochs += 1
            checkpoint = self._epochs
        self._ids.snapshot(checkpoint)
        if self._times is not None:
            self._times[checkpoint] = now_number()
        return committables

    def snapshot_state(self) -> Any:
        return list(self._outstanding.values())

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._ids.completed(checkpoint_id)
        self._outstanding = {
            name: one for name, one in self._outstanding.items() if self._ids.is_prepared(name)
        }
        if self._times is not None and checkpoint_id in self._times:
            self._abort_lost_writers(self._times[checkpoint_id])
            self._times = None

    def _abort_lost_writers(self, before: int) -> None:
        """Abort the transactions of earlier writers of this subtask. Their work was repeated.

        A lost task can begin a transaction before it is lost. A writer whose checkpoint is complete
        is not lost itself, and aborts only transactions that are older than its checkpoint.
        """
        kept = self._ids.used | self._restored
        self._transactions.fence_all(self._own_ids, kept, created_before=before)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._ids.aborted(checkpoint_id)

    def close(self) -> None:
        """Abort the open transaction, so that readers need not wait for its end."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(KafkaException, SystemError):
                producer.purge()
                producer.abort_transaction(_ABORT_SECONDS)
        self._next = self._current = None
        self._transactions.close()

    def _begin(self) -> Producer:
        preparation, self._next = self._next, None
        if preparation is None:
            preparation = self._preparation()
        self._current = preparation
        producer = preparation.result()
        try:
            producer.begin_transaction()
        except KafkaException as error:
            raise self._explained(error.args[0], "") from error
        self._producer = producer
        self._begun_at = time.time()
        return producer

    def _pre_commit(self, *, is_last: bool) -> dict[str, Any]:
        """Return the committable of the open transaction, and let go of its producer."""
        producer, current = self._producer, self._current
        assert producer is not None
        assert current is not None
        self._flush(producer)
        found = self._transactions.describe(current.name)
        if (
            found is None
            or found.state != "Ongoing"
            or (found.producer_id, found.epoch) != (current.producer_id, current.epoch)
        ):
            raise TransactionLostError(f"prepared the transaction {current.name}", 90)
        committable = {
            "id": current.name,
            "producer_id": current.producer_id,
            "epoch": current.epoch,
            "begun_at": self._begun_at,
        }
        self._warn_if_old(current.name)
        self._outstanding[current.name] = committable
        self._ids.prepared(current.name)
        # A producer that is closed would abort the transaction. One that is deleted does not.
        self._producer = self._current = None
        if not is_last:
            self._prepare_next([producer])
        return committable

    def _warn_if_old(self, name: str) -> None:
        """Log a warning if the transaction is old: Kafka may abort it before its checkpoint commits it."""
        age = time.time() - self._begun_at
        limit = int(self._properties["transaction.timeout.ms"]) / 1000
        if age > limit * _OLD:
            _log.warning(
                "The Kafka transaction %s is %d s old, and Kafka aborts it after %d s. Make "
                "checkpoints more often, or increase transaction.timeout.ms.",
                name,
                age,
                limit,
            )

    def _prepare_next(self, retired: list[Producer] | None = None) -> None:
        if self._next is None:
            self._next = self._preparation(retired)

    def _preparation(self, retired: list[Producer] | None = None) -> _Preparation:
        name = self._ids.take()
        properties = {**self._properties, "transactional.id": name}
        return _Preparation(
            name,
            lambda: self._new_producer(properties),
            KafkaTransactions(properties, self._timeout),
            self._timeout,
            self._explained,
            retired or [],
        )


class _Preparation:
    """A producer that initializes its transactions in a thread."""

    def __init__(
        self,
        name: str,
        new_producer: Callable[[], Producer],
        transactions: KafkaTransactions,
        timeout: float,
        explained: Callable[[KafkaError, str], Exception],
        retired: list[Producer],
    ) -> None:
        """Start the thread.

        Args:
            name: The transactional id.
            new_producer: Creates the producer.
            transactions: A client for this thread, which tells the producer id and the epoch.
            timeout: The longest time to wait, in seconds.
            explained: Makes an error of an error of Kafka.
            retired: Producers to delete, which may take a while. The list gets empty.
        """
        self.name = name
        self.producer_id = self.epoch = -1
        self._new_producer = new_producer
        self._transactions = transactions
        self._deadline = time.monotonic() + timeout
        self._explained = explained
        self._producer: Producer | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(
            target=self._run, args=(retired,), name=f"firesteel-kafka-{name}", daemon=True
        )
        self._thread.start()

    def result(self) -> Producer:
        """Wait for the producer and return it, once."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        producer, self._producer = self._producer, None
        assert producer is not None
        return producer

    def _run(self, retired: list[Producer]) -> None:
        try:
            retired.clear()
            producer = self._new_producer()
            self._initialize(producer)
            found = self._transactions.describe(self.name)
            if found is None:
                raise TransactionLostError(f"began the transaction {self.name}", 90)
            self.producer_id, self.epoch = found.producer_id, found.epoch
            self._producer = producer
        except Exception as error:  # noqa: BLE001 - raised by ``result``
            self._error = error
        finally:
            self._transactions.close()

    def _initialize(self, producer: Producer) -> None:
        while True:
            left = self._deadline - time.monotonic()
            try:
                producer.init_transactions(max(0.1, left))
            except KafkaException as caught:
                error: KafkaError = caught.args[0]
                if not error.retriable() or left <= 0:
                    raise self._explained(error, self.name) from caught
                time.sleep(_RETRY_SECONDS)
            else:
                return


def _is_about_trust(error: KafkaError) -> bool:
    """Return True for a certificate that is not trusted. Other errors of TLS may go away."""
    return error.code() == KafkaError._SSL and "certificate verify failed" in error.str()


def _takes_as_is(schema: SerializationSchema) -> type | None:
    """Return the type of records that librdkafka writes as the schema does, or None."""
    if type(schema) is ByteArraySchema:
        return bytes
    if type(schema) is SimpleStringSchema and schema.charset == "utf-8":
        return str
    return None


def _topic_name(topic: object) -> str:
    if not isinstance(topic, str):
        raise TypeError(f"A topic selector must return the name of a topic, got {topic!r}")
    return topic


def _one_of(partitions: Sequence[int], partition: object) -> int:
    if partition not in partitions:
        raise ValueError(f"The partitioner returned {partition!r}, the topic has {partitions}")
    assert isinstance(partition, int)
    return partition


def _committables(state: Any) -> list[dict[str, Any]]:
    """Return the committables of a state, or of several after rescaling."""
    found: list[dict[str, Any]] = []
    for one in state or ():
        found += one if isinstance(one, list) else [one]
    return found
