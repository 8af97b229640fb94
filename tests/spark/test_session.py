"""The Spark session that Firesteel starts."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
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


def test_spark_starts_where_the_name_of_the_temporary_directory_is_long() -> None:
    """The longest that is used for sockets: their whole path may have about 100 characters."""
    program = """
from firesteel.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
env.from_collection([1, 2]).map(lambda n: -n).print()
env.execute()
"""
    with tempfile.TemporaryDirectory(dir="/tmp") as outer:
        directory = Path(outer, "d" * (40 - len(outer) - 1))
        directory.mkdir()
        ended = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"TMPDIR": str(directory)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.stdout, ended.returncode) == ("-1\n-2\n", 0), ended.stderr
        assert [path.name for path in directory.iterdir() if "firesteel" in path.name] == []
