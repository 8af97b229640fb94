"""The driver's connections to live slots, and the directories of its sockets."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from firesteel.spark.live_connections import Connections

_KILLED = """
import os, signal
from firesteel.spark.epoch_server import EpochServer
from firesteel.spark.live_connections import Connections
connections, server = Connections("0" * 32, None), EpochServer("0" * 32, None)
connections.open()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_driver_sweeps_the_sockets_of_one_that_was_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The path of a socket must be short.
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        monkeypatch.setattr(tempfile, "tempdir", name)
        alive, new = Connections("1234", None), Connections("1234", None)
        alive.open()
        subprocess.run(
            [sys.executable, "-c", _KILLED],
            env={**os.environ, "TMPDIR": name, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
        found = {path.name.rpartition("-")[0] for path in Path(name).iterdir()}
        assert found == {"firesteel-live-1234", "firesteel-live-000000", "firesteel-clock-000000"}
        new.open()
        directories = list(Path(name).iterdir())
        assert [path.name.rpartition("-")[0] for path in directories] == ["firesteel-live-1234"] * 2
        assert all((directory / "0.sock").exists() for directory in directories)
        alive.close()
        new.close()
        assert list(Path(name).iterdir()) == []
