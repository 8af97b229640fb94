"""Makes the requests of an AsyncFunction, with timeouts and retries, inside the event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any

from firesteel.datastream.functions import AsyncFunction, AsyncFunctionDescriptor
from firesteel.errors import shorten


class AsyncRequest:
    """A request for one record. The loop's thread fills it in, then the slot's thread reads it.

    error: the exception that ``failed_in``, a method of the user's function, raised.
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
        # For the queue: the request is done, and the segment of the queue that it belongs to.
        self.done = False
        self.segment: Any = None
        # For the loop: there is an answer. A late answer must not replace that of the timeout.
        self.settled = False
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None


_STOP_SECONDS = 5.0


class EventLoopThread:
    """Runs an event loop from its creation until ``stop``. It does not keep a process alive."""

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
        """Call a function in the loop's thread, await a coroutine, and return the result."""

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


_CANCEL_SECONDS = 5.0


class AsyncInvoker:
    """Takes requests, and puts them into ``completed`` when they have an answer.

    All methods run in the loop's thread. A canceled invoker gives no more answers.
    """

    def __init__(
        self, descriptor: AsyncFunctionDescriptor, completed: SimpleQueue[AsyncRequest]
    ) -> None:
        self._function: AsyncFunction[Any, Any] = descriptor.async_function
        self._invoke = self._function.async_invoke
        self._timeout = descriptor.timeout.to_milliseconds() / 1000
        self._completed = completed
        self._strategy = descriptor.async_retry_strategy
        predicate = self._strategy.get_retry_predicate()
        self._retry_result = predicate.result_predicate()
        self._retry_exception = predicate.exception_predicate()
        self._retries = self._retry_result is not None or self._retry_exception is not None
        # The loop itself keeps only weak references.
        self._tasks: set[asyncio.Task[None]] = set()
        self._canceled = False

    def start(self, requests: list[AsyncRequest]) -> None:
        loop = asyncio.get_running_loop()
        for request in requests:
            task = request.task = loop.create_task(self._answer(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            if self._timeout > 0:
                request.timer = loop.call_later(self._timeout, self._expire, request)

    async def cancel(self) -> None:
        """Cancel all requests. User code that does not react to cancellation is abandoned."""
        self._canceled = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CANCEL_SECONDS)

    async def _answer(self, request: AsyncRequest) -> None:
        try:
            attempts = self._attempts if self._retries else self._invoke
            results = _as_list(await attempts(request.value), self._function)
        except BaseException as error:  # noqa: BLE001 - a SystemExit would end the loop
            # Cancellation arrives here, too. Ours was settled before, the user's own is a failure.
            self._settle(request, error=error, failed_in=self._invoke)
        else:
            self._settle(request, results)

    async def _attempts(self, value: Any) -> Any:
        attempts = 1
        while True:
            try:
                results = await self._invoke(value)
            except Exception as error:
                if not self._is_wanting(self._retry_exception, error, attempts):
                    raise
            else:
                if not self._is_wanting(self._retry_result, results, attempts):
                    return results
            await asyncio.sleep(self._strategy.get_backoff_time_millis(attempts) / 1000)
            attempts += 1

    def _is_wanting(
        self, predicate: Callable[[Any], bool] | None, answer: Any, attempts: int
    ) -> bool:
        if predicate is None or answer is None or not predicate(answer):
            return False
        return self._strategy.can_retry(attempts)

    def _expire(self, request: AsyncRequest) -> None:
        if request.settled or self._canceled:
            return
        function = self._function
        try:
            results = _as_list(function.timeout(request.value), function)
        except BaseException as error:  # noqa: BLE001 - a SystemExit would end the loop
            if type(function).timeout is AsyncFunction.timeout:
                # Without a handler of the user's, the request itself has failed.
                self._settle(request, error=self._too_late(), failed_in=self._invoke)
            else:
                self._settle(request, error=error, failed_in=function.timeout)
        else:
            self._settle(request, results)
        assert request.task is not None
        request.task.cancel()

    def _too_late(self) -> TimeoutError:
        return TimeoutError(
            f"no answer within {self._timeout:g} s. Raise the timeout of the operator, or override "
            f"timeout(value) to return results for such records"
        )

    def _settle(
        self,
        request: AsyncRequest,
        results: list[Any] | None = None,
        error: BaseException | None = None,
        failed_in: Callable[..., Any] | None = None,
    ) -> None:
        if request.settled or self._canceled:
            return
        request.settled = True
        if request.timer is not None:
            request.timer.cancel()
        if results is not None:
            request.results = results
        request.error, request.failed_in = error, failed_in
        self._completed.put(request)


def _as_list(results: Any, function: AsyncFunction[Any, Any]) -> list[Any]:
    """Return the results as a list. The errors are those of PyFlink, with the result."""
    if type(results) is list:
        return results
    if isinstance(results, Iterable) and not isinstance(results, str | bytes):
        return list(results)
    expected = "cannot be none" if results is None else "should be of list type"
    raise RuntimeError(
        f"The result of AsyncFunction {expected}, please check the methods 'async_invoke' and "
        f"'timeout' of class '{type(function)}'. They return a list, which is empty if a record has "
        f"no result, but the result is {shorten(results)}."
    )
