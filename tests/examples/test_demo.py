"""`make demo` in a pipe: windows, a crash, a recovery, and every click counted once."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading

import pytest

from tests.examples.programs import REPOSITORY

_TIME_LIMIT_SECONDS = 180


@pytest.mark.spark
def test_the_demo_survives_its_crash_and_counts_every_click_once() -> None:
    run = subprocess.run(
        [sys.executable, "examples/demo/run.py", "--seconds", "10", "--crash-after", "0"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=_TIME_LIMIT_SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4_000:]
    assert run.stdout.startswith("JobGraph of ")
    assert re.search(r"^window until \d\d:\d\d:\d\d: home \d", run.stdout, re.MULTILINE)
    assert re.search(r"latency [1-9][\d.]* ms median, [\d.]+ ms 99th", run.stdout)
    assert re.search(r"returned to checkpoint \d+ and continues", run.stdout)
    assert re.search(r"^([\d,]+) of \1 good clicks counted", run.stdout, re.MULTILINE)


@pytest.mark.spark
def test_ctrl_c_ends_the_demo_without_a_traceback() -> None:
    # If a shell runs the tests in the background, they ignore it, and so would the demo.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    demo = subprocess.Popen(
        [sys.executable, "examples/demo/run.py", "--seconds", "600", "--crash-after", "600"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, before)
    killer = threading.Timer(_TIME_LIMIT_SECONDS, demo.kill)
    killer.start()
    try:
        assert demo.stdout is not None
        assert any(line.startswith("window until") for line in demo.stdout)
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate()
    finally:
        killer.cancel()
        demo.kill()
    assert demo.returncode == 130, errors
    assert errors.endswith("\nCanceled.\n")
    assert "Traceback" not in errors
