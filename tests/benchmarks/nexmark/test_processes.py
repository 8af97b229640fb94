"""The meter of processor time."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.nexmark.processes import CpuMeter

_WORKER = """
import sys, time
while time.process_time() < 0.3:
    pass
print("done", flush=True)
sys.stdin.read()
"""


def test_processes_that_have_ended_are_counted() -> None:
    meter = CpuMeter(os.getpid())
    before = meter.seconds()
    with subprocess.Popen(
        [sys.executable, "-c", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "done\n"
        while_it_runs = meter.seconds() - before
    assert while_it_runs > 0.25
    assert meter.seconds() - before >= while_it_runs
