"""Back pressure in jobs on Spark: REST names the vertex that causes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner

from firesteel.cli.main import main
from firesteel.common.configuration import Configuration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.functions import CoMapFunction, SinkFunction
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.rest.server import RestServer
from tests.integration.conftest import MakeEnvironment
from tests.rest.client import Client
from tests.waiting import wait_until

NEARLY_ALL = 0.85
A_LITTLE = 0.15


def slow(value: Any) -> Any:
    time.sleep(0.001)
    return value


class Nowhere(SinkFunction):
    def invoke(self, value: object, context: SinkFunction.Context) -> None:
        pass


class SlowSink(SinkFunction):
    def invoke(self, value: object, context: SinkFunction.Context) -> None:
        time.sleep(0.001)


class Both(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


def numbers(env: StreamExecutionEnvironment, name: str = "numbers") -> DataStream:
    source = NumberSequenceSource(0, 10**12)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), name).set_parallelism(1)


class Pressure:
    """Back pressure of a running job, by the name of a vertex."""

    def __init__(self, client: Client, job_id: str) -> None:
        self.client = client
        self.path = f"/jobs/{job_id}"

    def ids(self) -> dict[str, str]:
        vertices = self.client.get(self.path).json()["vertices"]
        return {vertex["name"]: vertex["id"] for vertex in vertices}

    def find(self, name: str) -> str:
        (found,) = [vertex for known, vertex in self.ids().items() if name in known]
        return found

    def of(self, name: str) -> dict[str, Any]:
        reply = self.client.get(f"{self.path}/vertices/{self.find(name)}/backpressure")
        body: dict[str, Any] = reply.json()
        return body

    def busy(self, name: str) -> list[float]:
        return [subtask["busyRatio"] for subtask in self.of(name)["subtasks"]]

    def level(self, name: str) -> str:
        return str(self.of(name)["backpressure-level"])

    def roots(self) -> list[str]:
        found = self.client.get(f"{self.path}/backpressure").json()["roots"]
        return [vertex["name"] for vertex in found]

    def everything(self) -> str:
        return self.client.get(f"{self.path}/backpressure").text

    def shown(self) -> str:
        """Return the lines of ``firesteel info``."""
        job_id, address = self.path.rpartition("/")[2], f"localhost:{self.client.port}"
        return str(CliRunner().invoke(main, ["info", job_id, "-m", address]).output)


@contextmanager
def watched(
    env: StreamExecutionEnvironment, build: Callable[[StreamExecutionEnvironment], object]
) -> Iterator[Pressure]:
    dispatcher = Dispatcher(Configuration.from_dict({"rest.port": "0"}))
    dispatcher.follow_program()
    build(env)
    with RestServer(dispatcher) as server:
        job = env.execute_async("pressure")
        try:
            yield Pressure(Client(server.port), str(job.get_job_id()))
        finally:
            job.cancel().result()
            dispatcher.close()


def test_a_slow_map_is_busy_and_slows_down_everything_before_it(make_env: MakeEnvironment) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        mapped = numbers(env).rebalance().map(slow).name("slow map").set_parallelism(1)
        mapped.rebalance().add_sink(Nowhere()).name("nowhere").set_parallelism(1)

    with watched(make_env(parallelism=1), build) as pressure:
        wait_until(
            lambda: (
                pressure.level("numbers") == "high"
                and min(pressure.busy("slow map")) >= NEARLY_ALL
                and pressure.roots() == ["slow map"]
            ),
            pressure.everything,
        )
        assert pressure.level("slow map") == "ok"
        assert pressure.level("nowhere") == "ok"
        assert max(pressure.busy("nowhere")) <= A_LITTLE
        wait_until(lambda: "Root of back pressure: slow map (" in pressure.shown(), pressure.shown)
        # The shares of each subtask are those of a whole.
        for name in ("numbers", "slow map", "nowhere"):
            for subtask in pressure.of(name)["subtasks"]:
                shares = subtask["ratio"] + subtask["busyRatio"] + subtask["idleRatio"]
                assert shares == pytest.approx(1.0)


@pytest.mark.slow
def test_a_slow_sink_is_the_root(make_env: MakeEnvironment) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        numbers(env).rebalance().add_sink(SlowSink()).name("slow sink").set_parallelism(1)

    with watched(make_env(parallelism=1), build) as pressure:
        wait_until(
            lambda: (
                pressure.level("numbers") == "high"
                and min(pressure.busy("slow sink")) >= NEARLY_ALL
                and pressure.roots() == [name for name in pressure.ids() if "slow sink" in name]
            ),
            pressure.everything,
        )
        assert pressure.level("slow sink") == "ok"


@pytest.mark.slow
@pytest.mark.execution("real-time")
def test_a_slow_input_of_a_join_is_the_root(make_env: MakeEnvironment) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        left = numbers(env, "left").rebalance().map(slow).name("slow input").set_parallelism(1)
        right = numbers(env, "right").filter(lambda value: value % 1_000_000 == 0)
        joined = left.connect(right.rebalance()).map(Both()).name("join")
        joined.set_parallelism(1).add_sink(Nowhere())

    with watched(make_env(parallelism=1), build) as pressure:
        wait_until(
            lambda: (
                pressure.level("left") == "high"
                and min(pressure.busy("slow input")) >= NEARLY_ALL
                and pressure.roots() == ["slow input"]
            ),
            pressure.everything,
        )
        assert pressure.level("join") == "ok"
        assert max(pressure.busy("join")) <= 2 * A_LITTLE


@pytest.mark.execution("real-time")
def test_a_hot_key_presses_back_on_one_subtask_only(make_env: MakeEnvironment) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        keyed = numbers(env).key_by(lambda value: 0 if value % 1000 else value % 7_000)
        mapped = keyed.map(lambda value: value).name("keyed").set_parallelism(2)
        slowed = mapped.rescale().map(slow).name("slow map").set_parallelism(2)
        slowed.add_sink(Nowhere())

    with watched(make_env(parallelism=2), build) as pressure:

        def levels() -> list[str]:
            return sorted(one["backpressure-level"] for one in pressure.of("keyed")["subtasks"])

        wait_until(
            lambda: levels() == ["high", "ok"] and max(pressure.busy("slow map")) >= NEARLY_ALL,
            pressure.everything,
        )
        assert min(pressure.busy("slow map")) <= 0.5
        assert pressure.roots() == [name for name in pressure.ids() if "slow map" in name]
