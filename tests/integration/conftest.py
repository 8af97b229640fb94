"""One Spark session for all tests of this folder, because it takes seconds to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.spark.session import stop_own_session

SLOTS = 4

MakeEnvironment = Callable[..., StreamExecutionEnvironment]


@pytest.fixture(scope="session", autouse=True)
def _stop_spark_at_the_end() -> Iterator[None]:
    yield
    stop_own_session()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test of this folder on both ways to execute, unless only one makes sense.

    Micro-batches are slow, except where a test says that both ways are quick enough.
    """
    if "execution" not in metafunc.fixturenames:
        return
    if only := metafunc.definition.get_closest_marker("execution"):
        ways = list(only.args)
    elif metafunc.definition.get_closest_marker("both_ways"):
        ways = ["real-time", "micro-batch"]
    else:
        ways = ["real-time", pytest.param("micro-batch", marks=pytest.mark.slow)]
    metafunc.parametrize("execution", ways)


@pytest.fixture
def make_env(execution: str) -> MakeEnvironment:
    """Environments with settings by key; all share the session."""

    def make(parallelism: int = 2, **settings: str) -> StreamExecutionEnvironment:
        configuration = Configuration()
        configuration.set_string("firesteel.execution", execution)
        configuration.set_string("taskmanager.numberOfTaskSlots", str(SLOTS))
        for key, value in settings.items():
            configuration.set_string(key.replace("__", "-").replace("_", "."), value)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(parallelism)
        return env

    return make


@pytest.fixture
def env(make_env: MakeEnvironment) -> StreamExecutionEnvironment:
    return make_env()
