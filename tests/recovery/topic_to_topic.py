"""A job from topic to topic through a keyed window and a join, and the results it must write."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, as its manual says
    OffsetSpec,
)

from firesteel.common import Duration, Row, Types, WatermarkStrategy
from firesteel.common.serialization import SerializationSchema, SimpleStringSchema
from firesteel.common.time import Time
from firesteel.connectors.kafka.transactions import KafkaTransactions
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from firesteel.datastream.functions import KeyedProcessFunction, ProcessWindowFunction
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import TumblingEventTimeWindows
from tests.servers.kafka import KafkaClients

PARTITIONS = 3
KEYS = 5
WINDOW_MILLIS = 1000
MILLIS_PER_RECORD = 40
RESULT = Types.ROW_NAMED(["key", "number", "value"], [Types.STRING(), Types.LONG(), Types.STRING()])
_SECONDS = 60.0


@dataclass(frozen=True)
class Topics:
    """The topics of a job with ``records`` numbers in each input.

    join_keys: the number of keys of the join.
    seconds_per_record: the time that a record takes, so that the job lasts.
    """

    servers: str
    records: int
    join_keys: int
    seconds_per_record: float
    clicks: str
    orders: str
    sums: str
    pairs: str

    @staticmethod
    def create(kafka: KafkaClients, records: int, seconds_per_record: float = 0.0) -> Topics:
        """Create the topics, and write the numbers from 0 in turn to the partitions."""
        clicks, orders, sums, pairs = (kafka.topic(PARTITIONS) for _ in range(4))
        for topic in (clicks, orders):
            for partition in range(PARTITIONS):
                numbers = range(partition, records, PARTITIONS)
                stamps = [1 + number * MILLIS_PER_RECORD for number in numbers]
                kafka.write(topic, map(str, numbers), partition, timestamps=stamps)
        return Topics(
            kafka.servers,
            records,
            max(1, records // 5),
            seconds_per_record,
            clicks,
            orders,
            sums,
            pairs,
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    # The job

    def build(self, env: StreamExecutionEnvironment) -> None:
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
        clicks = env.from_source(self._source(self.clicks), strategy, "clicks").uid("clicks")
        orders = env.from_source(self._source(self.orders), strategy, "orders").uid("orders")
        seconds, join_keys = self.seconds_per_record, self.join_keys

        def number(text: str) -> int:
            if seconds:
                time.sleep(seconds)
            return int(text)

        clicks, orders = clicks.map(number, Types.INT()), orders.map(number, Types.INT())
        sums = (
            clicks.key_by(lambda number: number % KEYS, Types.INT())
            .window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW_MILLIS)))
            .process(Sum(), RESULT)
            .uid("sums")
        )
        sums.sink_to(self._sink(self.sums)).uid("sums sink")
        pairs = (
            clicks.join_on(orders, how="inner")
            .where(lambda click: click % join_keys)
            .equal_to(lambda order: order % join_keys)
            .apply(lambda click, order: (click, order), Types.TUPLE([Types.INT(), Types.INT()]))
            .uid("pairs")
        )
        numbered = pairs.key_by(lambda pair: pair[0] % KEYS, Types.INT()).process(
            Numbered(), RESULT
        )
        numbered.uid("numbered").sink_to(self._sink(self.pairs)).uid("pairs sink")

    def _source(self, topic: str) -> KafkaSource:
        return (
            KafkaSource.builder()
            .set_bootstrap_servers(self.servers)
            .set_topics(topic)
            .set_value_only_deserializer(SimpleStringSchema())
            .set_bounded(KafkaOffsetsInitializer.latest())
            .set_property("fetch.max.wait.ms", "10")
            .set_property("reconnect.backoff.max.ms", "200")
            .build()
        )

    def _sink(self, topic: str) -> KafkaSink:
        return (
            KafkaSink.builder()
            .set_bootstrap_servers(self.servers)
            .set_record_serializer(
                KafkaRecordSerializationSchema.builder()
                .set_topic(topic)
                .set_key_serialization_schema(Field("key"))
                .set_value_serialization_schema(Field("value"))
                .set_header_provider(lambda row: [("number", str(row.number).encode())])
                .build()
            )
            .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .set_transactional_id_prefix(topic)
            .set_property("reconnect.backoff.max.ms", "200")
            .build()
        )

    # The results

    def check(self, kafka: KafkaClients) -> None:
        """Compare the committed results with the expected ones: each once, in order by key."""
        self.wait_for_stable_offsets(kafka, self.ends(kafka))
        assert results(kafka, self.sums) == self.expected_sums()
        pairs = results(kafka, self.pairs)
        for key, found in pairs.items():
            numbers = [number for number, _ in found]
            assert numbers == list(range(1, len(found) + 1)), f"key {key}: {numbers}"
        texts = {key: sorted(text for _, text in found) for key, found in pairs.items()}
        assert texts == self.expected_pairs()

    def expected_sums(self) -> dict[str, list[tuple[int, str]]]:
        windows: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        for number in range(self.records):
            start = (1 + number * MILLIS_PER_RECORD) // WINDOW_MILLIS * WINDOW_MILLIS
            windows[str(number % KEYS)][start] += number
        return {
            key: [(start, str(total)) for start, total in sorted(sums.items())]
            for key, sums in windows.items()
        }

    def expected_pairs(self) -> dict[str, list[str]]:
        pairs: dict[str, list[str]] = defaultdict(list)
        for click in range(self.records):
            for order in range(click % self.join_keys, self.records, self.join_keys):
                pairs[str(click % KEYS)].append(f"{click} {order}")
        return {key: sorted(texts) for key, texts in pairs.items()}

    # Offsets

    def ends(self, kafka: KafkaClients) -> dict[tuple[str, int], int]:
        """Return the offsets after the last record of each output partition."""
        return self._latest(kafka, IsolationLevel.READ_UNCOMMITTED)

    def wait_for_stable_offsets(
        self, kafka: KafkaClients, ends: dict[tuple[str, int], int]
    ) -> float:
        """Wait until a ``read_committed`` reader gets up to ``ends``. Return the seconds."""
        begun = time.monotonic()
        while True:
            stable = self._latest(kafka, IsolationLevel.READ_COMMITTED)
            waiting = {place for place, end in ends.items() if stable[place] < end}
            seconds = time.monotonic() - begun
            if not waiting:
                return seconds
            assert seconds < _SECONDS, f"{waiting} wait at {stable}: {self._open(kafka)}"
            time.sleep(0.02)

    def _latest(self, kafka: KafkaClients, level: IsolationLevel) -> dict[tuple[str, int], int]:
        wanted = {
            TopicPartition(topic, partition): OffsetSpec.latest()
            for topic in (self.sums, self.pairs)
            for partition in range(PARTITIONS)
        }
        deadline = time.monotonic() + _SECONDS
        admin = kafka.admin
        while True:
            found = admin.list_offsets(wanted, isolation_level=level, request_timeout=30)
            try:
                return {
                    (one.topic, one.partition): future.result().offset
                    for one, future in found.items()
                }
            except KafkaException:
                # A leader is not elected yet, or the client knows an old one.
                if time.monotonic() >= deadline:
                    raise
                time.sleep(0.1)
                admin = kafka.new_admin()

    def _open(self, kafka: KafkaClients) -> list[Any]:
        transactions = KafkaTransactions({"bootstrap.servers": kafka.servers}, 10.0)
        pattern = re.compile(f"({re.escape(self.sums)}|{re.escape(self.pairs)}).*")
        return transactions.matching(pattern)


def results(kafka: KafkaClients, topic: str) -> dict[str, list[tuple[int, str]]]:
    """Return (number, value) by key, in the order of the topic."""
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for messages in kafka.read(topic):
        for message in messages:
            headers = dict(message.headers() or [])
            number = int(headers["number"])  # type: ignore[arg-type]  # bytes, as they were written
            key, value = message.key(), message.value()
            assert key is not None
            assert value is not None
            found[key.decode()].append((number, value.decode()))
    return dict(found)


class Field(SerializationSchema):
    """The text of one field of a row."""

    def __init__(self, name: str) -> None:
        self._name = name

    def serialize(self, element: Any) -> bytes:
        text: str = element[self._name]
        return text.encode()


class Sum(ProcessWindowFunction):
    def process(self, key: int, context: Any, elements: Any) -> Iterator[Row]:
        yield Row(str(key), context.window().start, str(sum(elements)))


class Numbered(KeyedProcessFunction):
    """The pairs of a key, numbered by state."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: tuple[int, int], ctx: Any) -> Iterator[Row]:
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        yield Row(str(ctx.get_current_key()), number, f"{value[0]} {value[1]}")
