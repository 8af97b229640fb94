"""Executors without NumPy run jobs whose records are rows."""

from __future__ import annotations

import subprocess
import sys

import pytest

_WITHOUT_NUMPY = "import sys; sys.modules['numpy'] = None; "
_SLOTS = ("task.live_slot", "task.slot", "task.operator_factory", "task.windowing.factory")


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT_NUMPY + program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("module", [*_SLOTS, "formats.json"])
def test_slots_load_without_numpy(module: str) -> None:
    ended = run(f"import firesteel.{module}")
    assert ended.returncode == 0, ended.stderr


def test_columns_say_that_they_need_it() -> None:
    ended = run("from firesteel.common import numpy_on_demand as np; np.arange(3)")
    assert "Columns need NumPy on each machine that runs tasks" in ended.stderr
