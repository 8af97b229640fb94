from __future__ import annotations

import pytest

from firesteel.datastream import StreamExecutionEnvironment


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    """To reach savepoints with; no Spark is started."""
    environment = StreamExecutionEnvironment.get_execution_environment()
    return environment.set_parallelism(2)
