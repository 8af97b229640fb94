"""One record that an AsyncFunction has been asked about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class AsyncRequest:
    """Filled in by the loop's thread; the slot's thread reads it once it was handed back.

    ``error`` is what ``failed_in``, a method of the user's function, raised.
    """

    __slots__ = (
        "done",
        "error",
        "failed_in",
        "results",
        "segment",
        "settled",
        "task",
        "timer",
        "timestamp",
        "value",
    )

    def __init__(self, value: Any, timestamp: int | None) -> None:
        self.value = value
        self.timestamp = timestamp
        self.results: list[Any] = []
        self.error: BaseException | None = None
        self.failed_in: Callable[..., Any] | None = None
        # For the queue: whether the answer is known, and between which watermarks it belongs.
        self.done = False
        self.segment: Any = None
        # For the loop: whether it has an answer. A late one must not replace that of the timeout.
        self.settled = False
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
