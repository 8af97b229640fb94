"""Asynchronous requests on Spark: requests in flight are repeated when a process dies."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Time
from firesteel.datastream import AsyncDataStream
from firesteel.datastream.functions import AsyncFunction
from firesteel.testing import ListSink
from tests.integration.conftest import MakeEnvironment

_RECORDS = 400


class Ask(AsyncFunction[int, int]):
    """A slow service; the first process that asks for a certain number is killed with requests in flight."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    async def async_invoke(self, value: int) -> list[int]:
        await asyncio.sleep(0.05 * (value % 3))
        if value == _RECORDS // 2:
            try:
                self.marker.open("x").close()
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return [value]


@pytest.mark.parametrize("order", ["ordered_wait", "unordered_wait"])
def test_every_request_of_a_killed_process_is_answered_once(
    make_env: MakeEnvironment, tmp_path: Path, order: str
) -> None:
    sink = ListSink(tmp_path / "results")
    env = make_env(
        **{
            "execution_checkpointing_interval": "100 ms",
            "execution_checkpointing_dir": str(tmp_path / "checkpoints"),
            "restart-strategy_type": "fixed-delay",
            "restart-strategy_fixed-delay_attempts": "3",
            "restart-strategy_fixed-delay_delay": "10 ms",
        }
    )
    numbers = env.from_collection(range(_RECORDS)).rebalance()
    wait: Any = getattr(AsyncDataStream, order)
    wait(numbers, Ask(tmp_path / "killed"), Time.seconds(30), capacity=20).sink_to(sink)
    env.execute("asks")
    assert (tmp_path / "killed").exists()
    assert Counter(sink.values()) == Counter(range(_RECORDS))
