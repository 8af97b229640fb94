"""Server in the driver for requests of tasks: one thread per connection answers them in turn."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from typing import Any

_log = logging.getLogger("firesteel")

_BACKLOG = 256
# The pause after an error of the listener, for example too many open files.
_PAUSE_SECONDS = 0.2


class RequestServer:
    """Answers requests of clients that know the token.

    Args:
        name: The name of the service, for threads and messages.
        address: The path of a Unix socket, or a host and a port.
        token: The secret that clients must know.
        answer: Returns the answer to a request. Called in the thread of a connection.
    """

    def __init__(
        self,
        name: str,
        address: str | tuple[str, int],
        token: str,
        answer: Callable[[Any], Any],
    ) -> None:
        self._name = name
        self._answer = answer
        family = "AF_UNIX" if isinstance(address, str) else "AF_INET"
        self._listener = Listener(address, family=family, backlog=_BACKLOG, authkey=token.encode())
        #: The address at which the server listens: the path, or the host and the port in use.
        self.address: str | tuple[str, int] = self._listener.address
        self._closed = False
        thread = f"firesteel-{name.replace(' ', '-')}"
        threading.Thread(target=self._accept, name=thread, daemon=True).start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection = self._listener.accept()
            except (EOFError, AuthenticationError):
                # A client without the token has been turned away.
                continue
            except OSError as error:
                if not self._closed:
                    _log.error("the %s could not accept a connection: %s", self._name, error)
                    time.sleep(_PAUSE_SECONDS)
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        try:
            with contextlib.suppress(EOFError, OSError), connection:
                while True:
                    connection.send(self._answer(connection.recv()))
        except Exception:  # noqa: BLE001 - no error vanishes in a thread
            # The client finds its connection closed, and its task fails.
            _log.exception("the %s could not answer a request", self._name)

    def close(self) -> None:
        self._closed = True
        wake_accept(self._listener)
        self._listener.close()


def wake_accept(listener: Listener) -> None:
    """Connect to a listener, because closing it does not wake up a thread in ``accept``."""
    address = listener.address
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family) as waker:
        waker.connect(address)
