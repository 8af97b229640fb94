"""Operations that take longer than a request: they get a trigger id, and are asked for later."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from firesteel.rest.calls import RestError, checked_id
from firesteel.rest.models import AsyncOperation, TriggerResponse

# More operations than this are forgotten, the oldest first.
_MOST = 1000


@dataclass(slots=True)
class _Operation:
    future: Future[Any]
    result: Callable[[Any], dict[str, Any]]
    ended_at: float | None = None


@dataclass(slots=True)
class Operations:
    """The operations by kind, owner and trigger id. Results are kept for ``store_seconds``."""

    store_seconds: float = 300.0
    clock: Callable[[], float] = time.monotonic
    _known: dict[tuple[str, str, str], _Operation] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    #: For operations that block, such as deleting files.
    background: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(2, "firesteel-rest-operations")
    )

    def start(
        self,
        kind: str,
        owner: str,
        begin: Callable[[], Future[Any]],
        result: Callable[[Any], dict[str, Any]],
        trigger_id: str | None = None,
    ) -> TriggerResponse:
        """Begin an operation, unless the trigger id says that it has begun before.

        Args:
            kind: For example "savepoint". Ids of different kinds are independent.
            owner: The id of the job, or "" for an operation of the server.
            begin: Begins the operation.
            result: Makes the body of a success from the result.
            trigger_id: An id that the client has chosen, or None.
        """
        if trigger_id is not None:
            checked_id(trigger_id, "triggerId")
        key = (kind, owner, trigger_id or secrets.token_hex(16))
        with self._lock:
            self._forget_old()
            if key not in self._known:
                operation = _Operation(begin(), result)
                self._known[key] = operation
                operation.future.add_done_callback(
                    lambda _: setattr(operation, "ended_at", self.clock())
                )
        return {"request-id": key[2]}

    def status(self, kind: str, owner: str, trigger_id: str) -> AsyncOperation:
        """Return the state of an operation. Raise RestError with the reason if it failed."""
        with self._lock:
            self._forget_old()
            operation = self._known.get((kind, owner, trigger_id))
        if operation is None:
            raise RestError(404, f"There is no operation with the trigger id {trigger_id}.")
        future = operation.future
        if not future.done():
            return {"status": {"id": "IN_PROGRESS"}, "operation": None}
        error = None if future.cancelled() else future.exception()
        if error is not None or future.cancelled():
            # Flink sends a serialized Java exception here, and its client waits for one. The client
            # shows the message of an error status at once.
            raise RestError(500, str(error) if error is not None else "The operation was canceled.")
        return {"status": {"id": "COMPLETED"}, "operation": operation.result(future.result())}

    def _forget_old(self) -> None:
        oldest = self.clock() - self.store_seconds
        for key in [
            key
            for key, operation in self._known.items()
            if operation.ended_at is not None and operation.ended_at < oldest
        ]:
            del self._known[key]
        while len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
