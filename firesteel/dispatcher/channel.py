"""The channel between the dispatcher and the process of a job master: messages of JSON."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from multiprocessing.connection import Connection
from typing import Any


class Channel:
    """One end of the channel. Any thread may send; one thread receives."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._connection = Connection(self._socket.fileno())
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        """Send a message. Raises OSError if the other side is gone."""
        payload = json.dumps(message).encode()
        with self._lock:
            self._connection.send_bytes(payload)

    def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None if the other side is gone."""
        try:
            message: dict[str, Any] = json.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            return None
        return message

    def end(self) -> None:
        """Send nothing more. The other side reads the end, but may still send."""
        with self._lock, contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        with self._lock:
            # The connection closes the descriptor.
            self._socket.detach()
            self._connection.close()
