"""Latency of records at a fixed rate, in milliseconds, of Firesteel and of the peers."""

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.latency import (
    BY_NAME,
    COMMON_CASES,
    GRACE_SECONDS,
    LATENCY_CASES,
    WINDOW_RECORDS,
    Arrivals,
    LatencyCase,
    Timeline,
    key_of,
    latencies,
    latest,
    report_latency,
    second_key_of,
    window_key_of,
)
from benchmarks.measure import Arguments, Figures, report_skipped
from benchmarks.peers.firesteel_jobs import Firesteel
from benchmarks.sections.section import Section
from benchmarks.text import below
from firesteel.common import WatermarkStrategy
from firesteel.common.job_client import JobClient
from firesteel.common.serialization import SimpleStringSchema
from firesteel.datastream import DataStream
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.datastream.connectors.datagen import (
    DataGeneratorSource,
    RateLimiter,
    RateLimiterStrategy,
)
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from firesteel.datastream.functions import SinkFunction

# From the first epoch of the job to the first record.
_LEAD_NANOSECONDS = 1_000_000_000
_START_SECONDS = 120.0
_LOOK_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Schedule(RateLimiterStrategy):
    """Makes records due at a fixed rate, even if the job is not ready to read them.

    A limiter that depends on the reader would hide the delay that a pause causes. The file has the
    time of the first record in nanoseconds. The benchmark writes it when the job runs.
    """

    begin_file: str
    rate: float

    def create_rate_limiter(self, parallelism: int) -> RateLimiter:
        return ScheduledLimiter(self.begin_file, self.rate / parallelism)


class ScheduledLimiter(RateLimiter):
    def __init__(self, begin_file: str, rate: float) -> None:
        self.begin_file = begin_file
        self.rate = rate
        self.begin: int | None = None
        self.granted = 0

    def acquire(self, wanted: int) -> int:
        if self.begin is None:
            self.begin = begin_in(self.begin_file)
            if self.begin is None:
                return 0
        due = int((time.time_ns() - self.begin) / 1e9 * self.rate) - self.granted
        granted = max(0, min(wanted, due))
        self.granted += granted
        return granted

    def give_back(self, unused: int) -> None:
        self.granted -= unused

    def delay(self) -> float:
        if self.begin is None:
            return _LOOK_SECONDS
        next_due = self.begin + (self.granted + 1) / self.rate * 1e9
        return max(0.0, (next_due - time.time_ns()) / 1e9)


class DueTime:
    """Generates records that are their due time in nanoseconds. A subtask creates them in order."""

    def __init__(self, schedule: Schedule, parallelism: int) -> None:
        self.begin_file = schedule.begin_file
        self.step = 1e9 * parallelism / schedule.rate
        self.begin: int | None = None
        self.made = 0

    def __call__(self, index: int) -> int:
        if self.begin is None:
            self.begin = begin_in(self.begin_file)
            assert self.begin is not None
        self.made += 1
        return self.begin + int(self.made * self.step)


def begin_in(file: str) -> int | None:
    with suppress(FileNotFoundError):
        return int(Path(file).read_text())
    return None


class Arrive(SinkFunction):
    """Writes the arrival of each record."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def open(self, runtime_context: Any) -> None:
        self.arrivals = Arrivals(self.directory)
        self.add = self.arrivals.add

    def invoke(self, value: int, context: SinkFunction.Context) -> None:
        self.add(value)

    def close(self) -> None:
        self.arrivals.flush()


class LatencyJob:
    """A job that reads records when they are due and writes their arrivals."""

    def __init__(self, peer: Firesteel, rate: int, records: int) -> None:
        self._scratch = tempfile.TemporaryDirectory()
        root = Path(self._scratch.name)
        self._begin_file = root / "begin"
        self.arrivals = str(root / "arrivals")
        Path(self.arrivals).mkdir()
        self.env = peer.environment()
        schedule = Schedule(str(self._begin_file), rate)
        source = DataGeneratorSource(DueTime(schedule, peer.parallelism), records, schedule)
        self.stream = self.env.from_source(source, WatermarkStrategy.no_watermarks(), "due")

    @contextmanager
    def running(self, results: DataStream) -> Iterator[JobClient]:
        """Start the job, whose results are written as arrivals."""
        results.add_sink(Arrive(self.arrivals))
        client = self.env.execute_async("latency")
        try:
            wait_for_first_epoch(client)
            yield client
        finally:
            with suppress(Exception):
                client.cancel().result()

    def begin(self) -> int:
        """Let the first record be due in a moment. Return its time in nanoseconds."""
        begin = time.time_ns() + _LEAD_NANOSECONDS
        made = self._begin_file.with_suffix(".new")
        made.write_text(str(begin))
        made.rename(self._begin_file)
        return begin

    def close(self) -> None:
        self._scratch.cleanup()


def wait_for_first_epoch(client: JobClient) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while client.get_overview()["epochs"] == 0:
        if client.get_job_status().result().is_terminal_state():
            client.get_job_execution_result().result()
        if time.monotonic() > deadline:
            raise TimeoutError(f"the job did not start within {_START_SECONDS:.0f} s")
        time.sleep(_LOOK_SECONDS)


def wait_until_passed(client: JobClient, nanoseconds: int) -> None:
    """Wait for the end of the job, or until a time has passed."""
    while time.time_ns() < nanoseconds:
        if client.get_job_status().result().is_terminal_state():
            client.get_job_execution_result().result()
            return
        time.sleep(0.1)


def results_of(stream: DataStream, case: LatencyCase) -> DataStream:
    if case.exchanges == 1:
        return stream.key_by(key_of).reduce(latest)
    windows = stream.key_by(window_key_of).count_window(WINDOW_RECORDS).reduce(latest)
    return windows.key_by(second_key_of).reduce(latest)


def settings_of(arguments: Arguments, case: LatencyCase, directory: str) -> dict[str, str]:
    settings = {}
    if "micro-batch" in arguments.options:
        settings["firesteel.execution"] = "micro-batch"
    if case.checkpoints:
        settings["execution.checkpointing.interval"] = "1 s"
        settings["execution.checkpointing.dir"] = directory
    return settings


def measure(arguments: Arguments) -> None:
    for case in COMMON_CASES:
        with tempfile.TemporaryDirectory() as checkpoints:
            settings = settings_of(arguments, case, checkpoints)
            measure_case(Firesteel(arguments.parallelism, settings), case, arguments.scale)
    if "micro-batch" not in arguments.options:
        measure_kafka(arguments)


def measure_case(peer: Firesteel, case: LatencyCase, scale: float) -> None:
    timeline = Timeline.of(case, scale, 0)
    job = LatencyJob(peer, case.rate, timeline.records)
    try:
        with job.running(results_of(job.stream, case)) as client:
            timeline = Timeline.of(case, scale, job.begin())
            wait_until_passed(client, timeline.end + int(GRACE_SECONDS * 1e9))
        report_latency(case, latencies(job.arrivals, timeline), timeline.results(case))
    finally:
        job.close()


def measure_kafka(arguments: Arguments) -> None:
    """Measure from the moment a record is due for the producer to its arrival in a consumer."""
    # The broker of the tests.
    from tests.servers.kafka import running_broker, why_not

    case = BY_NAME["kafka"]
    reason = why_not()
    if reason is not None:
        report_skipped("latency", case.title, reason)
        return
    with (
        tempfile.TemporaryDirectory() as root,
        running_broker(Path(root)) as broker,
    ):
        source_topic, sink_topic = (broker.topic(arguments.parallelism) for _ in range(2))
        settings = settings_of(arguments, case, str(Path(root, "checkpoints")))
        env = Firesteel(arguments.parallelism, settings).environment()
        source = (
            KafkaSource.builder()
            .set_bootstrap_servers(broker.servers)
            .set_topics(source_topic)
            .set_starting_offsets(KafkaOffsetsInitializer.earliest())
            .set_value_only_deserializer(SimpleStringSchema())
            .build()
        )
        sink = (
            KafkaSink.builder()
            .set_bootstrap_servers(broker.servers)
            .set_record_serializer(
                KafkaRecordSerializationSchema.builder()
                .set_topic(sink_topic)
                .set_value_serialization_schema(SimpleStringSchema())
                .build()
            )
            .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
            .build()
        )
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
        stream.sink_to(sink)
        client = env.execute_async("Kafka to Kafka")
        arrivals = Path(root, "arrivals")
        arrivals.mkdir()
        consumer = KafkaReader(broker.servers, sink_topic, str(arrivals))
        consumer.start()
        try:
            wait_for_first_epoch(client)
            timeline = Timeline.of(case, arguments.scale, time.time_ns() + _LEAD_NANOSECONDS)
            produce(broker.servers, source_topic, timeline)
            time.sleep(2.0)
        finally:
            consumer.stop()
            with suppress(Exception):
                client.cancel().result()
        report_latency(case, latencies(str(arrivals), timeline), timeline.results(case))


def produce(servers: str, topic: str, timeline: Timeline) -> None:
    """Write each record when it is due."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    for index in range(timeline.records):
        due = timeline.due(index)
        wait = (due - time.time_ns()) / 1e9
        if wait > 0:
            time.sleep(wait)
        producer.produce(topic, str(due))
        producer.poll(0)
    producer.flush()


class KafkaReader(threading.Thread):
    """Writes the arrival of each record in the topic of the sink."""

    def __init__(self, servers: str, topic: str, directory: str) -> None:
        super().__init__(daemon=True)
        self._servers = servers
        self._topic = topic
        self._arrivals = Arrivals(directory)
        self._ends = threading.Event()

    def stop(self) -> None:
        self._ends.set()
        self.join()

    def run(self) -> None:
        from confluent_kafka import Consumer

        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "latency",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([self._topic])
        while not self._ends.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                value = message.value()
                assert value is not None
                self._arrivals.add(int(value))
        self._arrivals.flush()
        consumer.close()


def row(figures: Figures) -> list[str]:
    case = BY_NAME[figures["case"]]
    is_own = figures["peer"] == "Firesteel"
    goals = case.goals if is_own else (None, None)
    texts = [
        milliseconds(figures[name], goal)
        for name, goal in zip(("p50", "p99", "p999", "longest"), (*goals, None, None), strict=True)
    ]
    return [case.title, figures["peer"], *texts]


def milliseconds(value: float | None, goal: float | None) -> str:
    if value is None:
        return "overloaded"
    text = f"{value:,.1f} ms" if value < 100 else f"{value:,.0f} ms"
    return text if goal is None else below(value, goal, text)


def order(figures: Figures) -> int:
    """Rows of the same case are next to each other."""
    return next(
        (index for index, case in enumerate(LATENCY_CASES) if case.name == figures.get("case")), -1
    )


SECTION = Section(
    "latency",
    ("from due to the sink", "", "median", "99 %", "99.9 %", "longest"),
    row,
    measure,
    order,
)
