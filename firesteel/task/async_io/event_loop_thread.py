"""A thread in which an asyncio event loop runs."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any

_STOP_SECONDS = 5.0


class EventLoopThread:
    """Runs from its creation until ``stop``, and never keeps a process from ending."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call it in the loop's thread, await it if it is a coroutine, and return its result."""

        async def called() -> tuple[Any, BaseException | None]:
            try:
                result = function(*arguments)
                return (await result if inspect.isawaitable(result) else result), None
            except BaseException as error:  # noqa: BLE001 - a SystemExit would end the loop
                return None, error

        result, error = asyncio.run_coroutine_threadsafe(called(), self.loop).result()
        if error is not None:
            raise error
        return result

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_STOP_SECONDS)
