from __future__ import annotations

from collections.abc import Iterator

import pytest

from firesteel.common.configuration import Configuration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream.functions import MapFunction
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.master.running_jobs import RunningJob
from firesteel.rest.server import RestServer
from firesteel.testing import ScriptedSource
from tests.rest.client import Client
from tests.rest.jobs import checkpointed, ended, start
from tests.waiting import wait_until


class Counted(MapFunction):
    def open(self, runtime_context) -> None:
        group = runtime_context.get_metrics_group()
        self.seen = group.counter("seen")
        group.gauge("depth", lambda: 3)
        self.lengths = group.distribution("lengths")

    def map(self, value):
        self.seen.inc()
        self.lengths.update(value)
        return (value % 3, value)


def numbers(env, *, bounded: bool = False) -> None:
    env.set_parallelism(2)
    source = ScriptedSource(list(range(20)), bounded=bounded)
    stream = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "numbers")
    counted = stream.rebalance().map(Counted()).name("count <&> ship")
    counted.key_by(lambda pair: pair[0]).sum(1).print()


@pytest.fixture(scope="module")
def dispatcher() -> Dispatcher:
    settings = {"web.history": "10", "rest.port": "0"}
    return Dispatcher(Configuration.from_dict(settings))


@pytest.fixture(scope="module")
def client(dispatcher: Dispatcher) -> Iterator[Client]:
    with RestServer(dispatcher) as server:
        yield Client(server.port)


@pytest.fixture(scope="module")
def job(dispatcher: Dispatcher, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningJob]:
    """A running job with checkpoints, whose records have all been read."""
    directory = tmp_path_factory.mktemp("job")
    job = start(dispatcher, numbers, "numbers", **checkpointed(directory))
    with ended(job):
        wait_until(lambda: job.accumulators().get("count <&> ship.seen") == 20)
        wait_until(lambda: job.checkpoints()["counts"]["completed"] >= 2)
        job.savepoint(str(directory / "savepoints"), None).result(30)
        yield job
