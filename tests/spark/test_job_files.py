"""The private directory of a job, over its attempts and over drivers that are killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.protocol.program import JobProgram
from firesteel.spark.job_files import JobFiles
from firesteel.spark.slot_task import SlotTask

_KILLED = """
import os, signal, sys
from firesteel.common import Configuration
from firesteel.spark.job_files import JobFiles
files = JobFiles("0" * 32, Configuration.from_dict({"firesteel.working-dir": sys.argv[1]}))
(files.segments / "segment").touch()
os.kill(os.getpid(), signal.SIGKILL)
"""


def _files(directory: Path) -> JobFiles:
    return JobFiles("1234", Configuration.from_dict({"firesteel.working-dir": str(directory)}))


def _program(attempt: int) -> JobProgram:
    env = StreamExecutionEnvironment()
    env.from_collection([1]).print()
    return JobProgram("1234", "job", attempt, env._compile().levels)


@given(st.integers(1, 30))
def test_attempts_share_the_program_and_leave_nothing(
    tmp_path_factory: pytest.TempPathFactory, attempts: int
) -> None:
    files = _files(tmp_path_factory.mktemp("work"))
    written = []
    for attempt in range(attempts):
        path, is_new = files.write_program(_program(attempt))
        written.append(is_new)
        assert SlotTask(path, None).load_program(attempt).unpack().attempt == attempt
        Path(files.spark_checkpoint(attempt), "offsets").mkdir(parents=True)
        files.remove_spark_checkpoint(attempt)
    assert written == [True, *[False] * (attempts - 1)]
    visible = {path.name for path in files.root.iterdir() if not path.name.startswith(".")}
    assert visible == {"segments", Path(path).name}
    files.remove()


def test_the_next_driver_sweeps_the_directory_of_one_that_was_killed(tmp_path: Path) -> None:
    alive = _files(tmp_path)
    subprocess.run(
        [sys.executable, "-c", _KILLED, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert len(list(tmp_path.iterdir())) == 2
    new = _files(tmp_path)
    assert set(tmp_path.iterdir()) == {alive.root, new.root}
    alive.remove()
    new.remove()
    assert list(tmp_path.iterdir()) == []
