"""RMQSource and RMQSink on a real server, without Spark."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from firesteel.common import Configuration
from firesteel.common.serialization import SimpleStringSchema
from firesteel.connectors.rabbitmq.connection_config import RMQClient, RMQConnectionError
from firesteel.datastream.connectors.base import ReaderContext, SourceReader
from firesteel.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSource
from firesteel.errors import FiresteelError
from firesteel.testing import Fault, JobHarness, ListSink, check_sink
from tests.connectors.conftest import persisted
from tests.recovery.jobs import RESTARTS
from tests.servers.rabbitmq import RabbitServer, running_rabbitmq
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

PATIENCE = 60.0
SETTINGS = Configuration(RESTARTS).set_string("restart-strategy.fixed-delay.attempts", "1000")


@pytest.fixture(scope="module")
def rabbit() -> Iterator[RabbitServer]:
    with running_rabbitmq() as server:
        yield server


def source_of(rabbit: RabbitServer, queue: str, *, ids: bool, **settings: Any) -> RMQSource:
    return RMQSource(rabbit.config(**settings), queue, ids, SimpleStringSchema())


def run_until(harness: JobHarness, reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not reached():
        harness.run_epoch()
        assert time.monotonic() < deadline, harness.status


def opened(source: RMQSource) -> SourceReader:
    checkpointed = Configuration.from_dict({"execution.checkpointing.interval": "1 s"})
    reader = source.with_configuration(checkpointed).create_reader(ReaderContext(0, 1))
    reader.add_splits(source.create_enumerator(1).discover_splits())
    return reader


def read(reader: SourceReader, count: int) -> list[Any]:
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count:
        found += reader.read(min(3, count - len(found)))
        assert time.monotonic() < deadline, found
    return found


def test_messages_are_acknowledged_with_checkpoints(rabbit: RabbitServer) -> None:
    queue = rabbit.queue()
    texts = [str(number) for number in range(10)]
    rabbit.publish(queue, texts)
    source = source_of(rabbit, queue, ids=False)
    reader = opened(source)
    assert read(reader, 10) == texts
    reader.close()
    wait_until(lambda: rabbit.ready(queue) == 10)
    reader = opened(source)
    assert read(reader, 6) == texts[:6]
    reader.begin_checkpoint(1)
    reader.begin_checkpoint(2)
    assert read(reader, 4) == texts[6:]
    reader.notify_checkpoint_complete(2)
    reader.close()
    wait_until(lambda: rabbit.ready(queue) == 4)
    assert rabbit.drain(queue) == texts[6:]


def test_messages_that_come_again_are_dropped_by_their_ids(rabbit: RabbitServer) -> None:
    queue = rabbit.queue()
    rabbit.publish(queue, range(6))
    source = source_of(rabbit, queue, ids=True)
    reader = opened(source)
    assert read(reader, 4) == ["0", "1", "2", "3"]
    saved = persisted(reader.snapshot_splits())
    reader.close()
    wait_until(lambda: rabbit.ready(queue) == 6)
    reader = source.create_reader(ReaderContext(0, 1))
    reader.add_splits(saved)
    assert read(reader, 2) == ["4", "5"]
    rabbit.restart()
    rabbit.publish(queue, ["6"])
    assert read(reader, 1) == ["6"]
    # All messages came again after the restart, and a new one after them.
    reader.begin_checkpoint(1)
    reader.notify_checkpoint_complete(1)
    wait_until(lambda: reader.snapshot_splits()[0].position is None)
    reader.close()
    assert rabbit.drain(queue) == []


def test_without_checkpoints_messages_are_acknowledged_at_once(rabbit: RabbitServer) -> None:
    queue = rabbit.queue()
    rabbit.publish(queue, range(5))
    source = source_of(rabbit, queue, ids=False)
    harness = JobHarness(lambda env: env.add_source(source))
    run_until(harness, lambda: len(harness.collected) == 5)
    harness.cancel()
    harness.run_epoch()
    assert rabbit.drain(queue) == []


def test_a_sink_writes_whole_epochs(rabbit: RabbitServer) -> None:
    queue = rabbit.queue()
    sink = RMQSink(rabbit.config(), queue, SimpleStringSchema())
    texts = [str(number) for number in range(100)]
    JobHarness(
        lambda env: env.from_collection(texts).rebalance().add_sink(sink),
        parallelism=2,
        records_per_epoch=7,
    ).run()
    assert Counter(rabbit.drain(queue)) == Counter(texts)


def test_the_contract_of_connectors(rabbit: RabbitServer) -> None:
    def create() -> tuple[RMQSink, Callable[[], list[str]]]:
        queue = rabbit.queue()
        sink = RMQSink(rabbit.config(), queue, SimpleStringSchema())
        return sink, lambda: rabbit.drain(queue)

    check_sink(create, [str(number) for number in range(40)], exactly_once=False, seeds=range(3))


def test_a_message_without_an_id(rabbit: RabbitServer) -> None:
    queue = rabbit.queue()
    rabbit.publish(queue, ["a"], with_ids=False)
    source = source_of(rabbit, queue, ids=True)
    harness = JobHarness(lambda env: env.add_source(source))
    with pytest.raises(FiresteelError, match="use_correlation_id=False"):
        harness.run()


def test_errors_name_the_setting(rabbit: RabbitServer) -> None:
    def config(user: str, virtual_host: str) -> RMQConnectionConfig:
        uri = f"amqp://guest:{user}@127.0.0.1:{rabbit.port}/{virtual_host}"
        return RMQConnectionConfig.Builder().set_uri(uri).build()

    with pytest.raises(RMQConnectionError, match="user and the password"):
        RMQClient(config("wrong", "%2F")).connect()
    with pytest.raises(RMQConnectionError, match="set_virtual_host"):
        RMQClient(config("guest", "nowhere")).connect()


ACTIONS = ["epoch"] * 6 + ["checkpoint"] * 4 + ["lose", "crash", "kill", "server", "publish"]


class History:
    """A job from queue to queue whose driver, tasks and server are killed."""

    def __init__(self, rabbit: RabbitServer, seed: int, directory: Path, *, ids: bool) -> None:
        self.rabbit = rabbit
        self.random = Random(seed)
        self.queue, self.target = rabbit.queue(), rabbit.queue()
        self.sink = ListSink(directory)
        self.published = 0
        # RabbitMQ soon notices the end of a reader whose process is lost.
        self.source = source_of(rabbit, self.queue, ids=ids, requested_heartbeat=1)
        self.arguments: dict[str, Any] = {
            "records_per_epoch": (3, 7, 20),
            "configuration": SETTINGS,
            "checkpoint_every": 0,
            "seed": seed,
        }
        self.origin: str | None = None
        self.publish()
        self.harness = JobHarness(self.program, **self.arguments)

    def program(self, env: Any) -> None:
        stream = env.add_source(self.source)
        stream.sink_to(self.sink)
        stream.add_sink(RMQSink(self.rabbit.config(), self.target, SimpleStringSchema()))

    def publish(self) -> None:
        self.rabbit.publish(self.queue, range(self.published, self.published + 20))
        self.published += 20

    def act(self) -> None:
        action = self.random.choice(ACTIONS)
        faults = None
        if action == "checkpoint":
            self.harness.request_checkpoint()
        elif action == "crash":
            self.harness.crash()
        elif action == "publish":
            self.publish()
        elif action == "server":
            self.rabbit.restart()
        elif action == "kill":
            self._kill()
        elif action == "lose":
            faults = dict.fromkeys(self.harness.places(), Fault.LOSE_HOST)
        self.harness.run_epoch(faults)

    def _kill(self) -> None:
        self.harness.kill()
        own = self.harness.checkpoint_directory()
        if any(own.glob("chk-*/_metadata")):
            self.origin = str(own.parent)
        # The connections of a process end with it.
        self.rabbit.restart()
        if self.origin is None:
            self.harness = JobHarness(self.program, **self.arguments)
        else:
            self.harness = self.harness.resume(self.origin)

    def finish(self) -> None:
        deadline = time.monotonic() + 2 * PATIENCE
        while len(set(self.sink.values())) < self.published:
            for _ in range(5):
                self.harness.run_epoch()
            self.harness.checkpoint()
            assert time.monotonic() < deadline, len(self.sink.values())
        for _ in range(3):
            self.harness.checkpoint()
        self.harness.cancel()
        self.harness.run()


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("ids", [True, False], ids=["exactly once", "at least once"])
def test_whatever_happens(rabbit: RabbitServer, seed: int, ids: bool, tmp_path: Path) -> None:
    history = History(rabbit, seed, tmp_path, ids=ids)
    for _ in range(30):
        history.act()
    history.finish()
    expected = Counter(str(number) for number in range(history.published))
    found = Counter(history.sink.values())
    assert not expected - found
    if ids:
        assert found == expected
    assert not expected - Counter(rabbit.drain(history.target))
