"""The Spark session that Firesteel starts."""

from __future__ import annotations

import stat
from pathlib import Path

from firesteel.datastream import StreamExecutionEnvironment


def test_spark_meets_its_python_workers_where_only_this_user_can(
    env: StreamExecutionEnvironment,
) -> None:
    settings = env.get_spark_session().sparkContext.getConf()
    assert sorted(env.from_collection([1, 2]).map(lambda n: -n).execute_and_collect()) == [-2, -1]
    directory = Path(str(settings.get("spark.python.unix.domain.socket.dir")))
    assert any(path.is_socket() for path in directory.iterdir())
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
