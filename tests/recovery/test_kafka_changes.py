"""Changes in Kafka while a job runs, or is down: no record is skipped without an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from firesteel.common import Configuration, WatermarkStrategy
from firesteel.connectors.kafka.errors import (
    OffsetOutOfRangeError,
    TopicRecreatedError,
)
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaSourceBuilder,
)
from firesteel.errors import FiresteelError
from firesteel.testing import JobHarness
from tests.recovery.jobs import RESTARTS
from tests.recovery.test_kafka import builder as of_texts
from tests.servers.kafka import KafkaBroker, running_broker
from tests.thoroughness import examples

NO_WATERMARKS = WatermarkStrategy.no_watermarks()
PATIENCE = 60.0

EARLIEST, LATEST = KafkaOffsetsInitializer.earliest(), KafkaOffsetsInitializer.latest()
# No record is that young, so reading starts at the end.
FUTURE = KafkaOffsetsInitializer.timestamp(4_000_000_000_000)
STARTS = {"earliest": EARLIEST, "latest": LATEST, "timestamp": FUTURE}


def builder(kafka: KafkaBroker, topic: str) -> KafkaSourceBuilder:
    return of_texts(kafka, topic).set_properties(
        {"reconnect.backoff.max.ms": "200", "partition.discovery.interval.ms": "1"}
    )


def program(source: KafkaSource) -> Callable[[Any], Any]:
    return lambda env: env.from_source(source, NO_WATERMARKS, "kafka")


def write(kafka: KafkaBroker, topic: str, start: int, stop: int, partition: int = 0) -> None:
    kafka.write(topic, map(str, range(start, stop)), partition)


def records_of(harness: JobHarness) -> list[int]:
    return sorted(map(int, harness.collected))


def run_until(harness: JobHarness, reached: Callable[[], bool]) -> None:
    """Run epochs. A job that fails, or stops making progress, is an error."""
    deadline = time.monotonic() + PATIENCE
    while not reached():
        if not harness.run_epoch():
            harness.run()
        assert time.monotonic() < deadline, harness.collected


def run_to_its_failure(harness: JobHarness) -> FiresteelError:
    deadline = time.monotonic() + PATIENCE
    while harness.run_epoch():
        assert time.monotonic() < deadline, harness.collected
    with pytest.raises(FiresteelError) as caught:
        harness.run()
    return caught.value


def read_count(harness: JobHarness) -> int:
    return sum(vertex.records_in for vertex in harness.master.metrics.vertices.values())


def started(kafka: KafkaBroker, source: KafkaSource, topic: str, first: int = 0) -> JobHarness:
    """A job that has read 10 records. Those with smaller numbers than ``first`` were there before."""
    write(kafka, topic, 0, first)
    harness = JobHarness(program(source))
    harness.run_epoch()
    write(kafka, topic, first, 10)
    run_until(harness, lambda: records_of(harness)[-1:] == [9])
    return harness


def test_partitions_that_are_added_while_a_job_runs_and_while_it_is_down(kafka):
    topic = kafka.topic()
    harness = started(kafka, builder(kafka, topic).set_starting_offsets(LATEST).build(), topic)
    kafka.add_partitions(topic, 2)
    write(kafka, topic, 10, 20, 1)
    run_until(harness, lambda: records_of(harness) == [*range(20)])
    savepoint = harness.stop()
    kafka.add_partitions(topic, 3)
    write(kafka, topic, 20, 30, 2)
    write(kafka, topic, 30, 40, 1)
    resumed = harness.resume(savepoint)
    run_until(resumed, lambda: records_of(resumed) == [*range(20, 40)])


@pytest.mark.parametrize("starting", STARTS)
def test_records_that_expire_while_a_job_is_down_fail_it(kafka, starting):
    topic = kafka.topic()
    source = builder(kafka, topic).set_starting_offsets(STARTS[starting]).build()
    harness = started(kafka, source, topic)
    savepoint = harness.stop()
    write(kafka, topic, 10, 20)
    kafka.forget_before(topic, 15)
    write(kafka, topic, 20, 30)
    resumed = harness.resume(savepoint)
    error = run_to_its_failure(resumed)
    assert OffsetOutOfRangeError.__name__ in str(error)
    assert topic in str(error)
    assert "no offset 10" in str(error)
    assert "auto.offset.reset" in str(error)
    assert resumed.collected == []


@pytest.mark.parametrize(("reset", "first"), [("earliest", 15), ("latest", 30)])
def test_records_that_expire_are_skipped_if_the_user_has_chosen_so(kafka, caplog, reset, first):
    topic = kafka.topic()
    source = builder(kafka, topic).set_property("auto.offset.reset", reset).build()
    harness = started(kafka, source, topic)
    savepoint = harness.stop()
    write(kafka, topic, 10, 30)
    kafka.forget_before(topic, 15)
    resumed = harness.resume(savepoint)
    while resumed.master.metrics.epochs < 5:
        resumed.run_epoch()
    write(kafka, topic, 30, 40)
    run_until(resumed, lambda: records_of(resumed)[-1:] == [39])
    assert records_of(resumed) == [*range(first, 40)]
    assert "Offset out of range" in caplog.text


def test_a_strategy_for_committed_offsets_is_a_choice_too(kafka):
    topic = kafka.topic()
    start = KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST)
    source = builder(kafka, topic).set_group_id(topic).set_starting_offsets(start).build()
    harness = started(kafka, source, topic)
    savepoint = harness.stop()
    write(kafka, topic, 10, 20)
    kafka.forget_before(topic, 15)
    resumed = harness.resume(savepoint)
    run_until(resumed, lambda: records_of(resumed) == [*range(15, 20)])


@pytest.mark.parametrize("discovery", ["1", "-1"])
def test_a_topic_that_is_made_again_while_a_job_is_down_fails_it(kafka, discovery):
    """The new topic has the offset at which the job would continue."""
    topic = kafka.topic()
    source = builder(kafka, topic).set_property("partition.discovery.interval.ms", discovery)
    harness = started(kafka, source.build(), topic)
    savepoint = harness.stop()
    kafka.recreate(topic)
    write(kafka, topic, 100, 130)
    error = run_to_its_failure(harness.resume(savepoint))
    assert isinstance(error, TopicRecreatedError)
    assert topic in str(error)


def test_a_topic_that_is_made_again_while_a_job_runs_fails_it(kafka):
    topic = kafka.topic()
    harness = started(kafka, builder(kafka, topic).build(), topic)
    kafka.recreate(topic)
    write(kafka, topic, 100, 130)
    error = run_to_its_failure(harness)
    assert topic in str(error)


@pytest.mark.parametrize("starting", STARTS)
def test_a_job_that_starts_over_without_a_checkpoint_starts_at_the_same_offsets(kafka, starting):
    topic = kafka.topic()
    write(kafka, topic, 0, 5)
    source = builder(kafka, topic).set_starting_offsets(STARTS[starting]).build()
    harness = JobHarness(program(source), checkpoint_every=0, configuration=RESTARTS)
    harness.run_epoch()
    write(kafka, topic, 5, 10)
    harness.crash()
    first = 0 if starting == "earliest" else 5
    run_until(harness, lambda: read_count(harness) >= 10 - first)
    harness.checkpoint()
    assert records_of(harness) == [*range(first, 10)]
    # A second job of the same program starts where it says.
    second = JobHarness(program(source))
    second.run_epoch()
    write(kafka, topic, 10, 12)
    first = 0 if starting == "earliest" else 10
    run_until(second, lambda: records_of(second) == [*range(first, 12)])


# Outages


@pytest.fixture(scope="module")
def own_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that tests may stop."""
    with running_broker(tmp_path_factory.mktemp("own-kafka")) as broker:
        yield broker


@pytest.mark.slow
@pytest.mark.parametrize(
    ("starting", "crashes"),
    [
        ("latest", "never"),
        ("earliest", "before a checkpoint"),
        ("latest", "before a checkpoint"),
        ("timestamp", "before a checkpoint"),
        ("latest", "after a checkpoint"),
    ],
)
def test_a_broker_that_is_down_for_a_while(own_kafka, starting, crashes):
    """The job reads on when the broker is back, also if it fails and restarts in the meantime."""
    kafka = own_kafka
    topic = kafka.topic()
    source = (
        builder(kafka, topic)
        .set_starting_offsets(STARTS[starting])
        # It stands for the minute after which a client gives up.
        .set_property("default.api.timeout.ms", "500")
        .build()
    )
    restarts = Configuration(RESTARTS)
    restarts.set_string("restart-strategy.fixed-delay.attempts", "10000")
    harness = JobHarness(program(source), checkpoint_every=0, configuration=restarts)
    harness.run_epoch()
    write(kafka, topic, 0, 10)
    run_until(harness, lambda: read_count(harness) == 10)
    if crashes == "after a checkpoint":
        harness.checkpoint()
    kafka.close()
    down_until = time.monotonic() + 2.0
    while time.monotonic() < down_until:
        harness.run_epoch()
    kafka.start()
    if crashes != "never":
        # Attempts fail until the broker answers.
        harness.crash()
    kafka.wait_until_it_answers()
    write(kafka, topic, 10, 20)

    def all_read() -> bool:
        if time.monotonic() > next_checkpoint[0]:
            next_checkpoint[0] = time.monotonic() + 0.5
            harness.checkpoint()
        return len(harness.collected) >= 20

    next_checkpoint = [time.monotonic() + 0.5]
    run_until(harness, all_read)
    assert records_of(harness) == [*range(20)]


# Random histories

STEPS = st.sampled_from(
    ["write", "write", "epoch", "epoch", "checkpoint", "crash", "expire", "partition", "recreate"]
)


class History:
    """A topic, a job that reads it, and the records that the job must return."""

    def __init__(self, kafka: KafkaBroker, starting: str) -> None:
        self._kafka = kafka
        self._starting = starting
        self._topic = kafka.topic()
        self._partitions = 1
        self._ends = [0]
        self._written = 0
        self._in_log: set[int] = set()
        self.expected: set[int] = set()
        # The records that were deleted before the first checkpoint: a job that starts over with the
        # oldest records does not find them.
        self.optional: set[int] = set()
        self.lost_something = False
        self._has_checkpoint = False
        self.write()
        if starting != "earliest":
            self.expected.clear()
        restarts = Configuration(RESTARTS)
        restarts.set_string("restart-strategy.fixed-delay.attempts", "12")
        source = builder(kafka, self._topic).set_starting_offsets(STARTS[starting]).build()
        self.harness = JobHarness(program(source), checkpoint_every=0, configuration=restarts)
        self.epoch()

    def write(self) -> None:
        for partition in range(self._partitions):
            numbers = range(self._written, self._written + 3)
            write(self._kafka, self._topic, numbers.start, numbers.stop, partition)
            self._ends[partition] += len(numbers)
            self._written = numbers.stop
            self._in_log |= {*numbers}
            self.expected |= {*numbers}

    def epoch(self) -> None:
        self.harness.run_epoch()

    def checkpoint(self) -> None:
        if self.harness.status.is_terminal_state():
            return
        try:
            self.harness.checkpoint()
        except FiresteelError:
            # The job restarts, or has failed.
            return
        self._has_checkpoint = True

    def crash(self) -> None:
        if not self.harness.status.is_terminal_state():
            self.harness.crash()

    def _delete(self) -> None:
        self.lost_something = True
        if self._starting == "earliest" and not self._has_checkpoint:
            self.optional |= self._in_log
        self._in_log.clear()

    def expire(self) -> None:
        self._delete()
        for partition in range(self._partitions):
            self._kafka.forget_before(self._topic, self._ends[partition], partition)

    def partition(self) -> None:
        self._partitions += 1
        self._ends.append(0)
        self._kafka.add_partitions(self._topic, self._partitions)

    def recreate(self) -> None:
        self._delete()
        self._ends = [0] * self._partitions
        self._kafka.recreate(self._topic, self._partitions)

    def read_the_rest(self) -> None:
        deadline = time.monotonic() + PATIENCE
        silent = 0
        while silent < 40 and not self.harness.status.is_terminal_state():
            assert time.monotonic() < deadline
            before = read_count(self.harness)
            self.epoch()
            silent = silent + 1 if read_count(self.harness) == before else 0
        self.checkpoint()


@settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(starting=st.sampled_from(sorted(STARTS)), steps=st.lists(STEPS, max_size=9))
@example(starting="timestamp", steps=["checkpoint", "write", "expire", "write"])
@example(starting="earliest", steps=["checkpoint", "recreate", "write", "write"])
@example(starting="latest", steps=["partition", "write", "crash"])
def test_whatever_happens_no_record_is_skipped_without_an_error(kafka, starting, steps):
    history = History(kafka, starting)
    harness = history.harness
    try:
        for step in steps:
            getattr(history, step)()
        history.read_the_rest()
        if harness.status.is_terminal_state():
            assert history.lost_something
            with pytest.raises(FiresteelError, match=r"no offset|a new topic|Partition \d"):
                harness.run()
            return
        found = records_of(harness)
        assert found == sorted({*found})
        assert {*found} <= history.expected
        assert history.expected <= {*found} | history.optional
    finally:
        # The clients of a job that runs on would use up the threads of this process.
        harness.cancel()
        harness.run_epoch()
