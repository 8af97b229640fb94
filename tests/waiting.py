"""Waiting for a condition that another thread or process brings about."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(
    condition: Callable[[], object],
    explain: Callable[[], str] = lambda: "the condition did not become true in time",
    seconds: float = 200.0,
) -> None:
    """Return as soon as ``condition`` is true.

    Args:
        condition: Is called until its result is true.
        explain: Gives the message of the failure.
        seconds: The time limit. It is long, because machines that run tests may be busy.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, explain()
        time.sleep(0.02)
