"""The driver's connections to live slots: controls go out, acks and output come back."""

from __future__ import annotations

import contextlib
import logging
import secrets
import selectors
import shutil
import socket
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from firesteel.protocol.live_round import Place
from firesteel.protocol.messages import EndEpoch, SlotControl, decode, encode
from firesteel.slothost.connection import make_private, socket_directory
from firesteel.spark.live_task import DriverAddress

_log = logging.getLogger("firesteel")

#: The message of a slot whose connection has ended.
LOST: Final = b""
_BACKLOG = 512
# New connections are noticed within this time at the latest.
_POLL_SECONDS = 0.5


class Connections:
    """Accepts the connections of slots, and receives their messages in one thread.

    ``messages`` has pairs of a place and a message. A place of None only wakes the reader up.
    """

    def __init__(self, job_id: str, *, local: bool) -> None:
        self._job_id = job_id
        self._local = local
        self.messages: SimpleQueue[tuple[Place | None, bytes]] = SimpleQueue()
        self._changed = threading.Condition()
        self._by_place: dict[Place, Connection] = {}
        self._listener: Listener | None = None
        self._directory: Path | None = None
        # Counts the queries. Connections of an earlier one are turned away.
        self._generation = 0

    def open(self) -> DriverAddress:
        """Listen for the slots of a new query."""
        token = secrets.token_hex(16)
        address: str | tuple[str, int]
        if self._local:
            if self._directory is None:
                self._directory = make_private(
                    socket_directory(f"firesteel-live-{self._job_id[:12]}")
                )
            address = str(self._directory / f"{self._generation}.sock")
        else:
            # Executors on other machines reach the driver at the address that Spark gave them.
            address = (_driver_host(), 0)
        family = "AF_UNIX" if self._local else "AF_INET"
        self._listener = Listener(address, family=family, backlog=_BACKLOG, authkey=token.encode())
        self.messages = SimpleQueue()
        selector = selectors.DefaultSelector()
        for target, arguments in (
            (self._accept, (self._listener, selector, self._generation)),
            (self._receive, (selector, self._generation)),
        ):
            threading.Thread(
                target=target, args=arguments, name="firesteel-live", daemon=True
            ).start()
        return DriverAddress(self._listener.address, token)

    def wait_for(self, count: int, seconds: float) -> bool:
        """Wait until this many slots are connected. Return False after ``seconds``."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._by_place) >= count, seconds)

    def send(self, place: Place, message: SlotControl | EndEpoch) -> None:
        """Send a message. A connection that is lost reports itself."""
        with contextlib.suppress(OSError, KeyError):
            self._by_place[place].send_bytes(encode(message))

    def wake_up(self) -> None:
        self.messages.put((None, b""))

    def hang_up(self) -> None:
        """Close the connections of the query, and listen no more."""
        with self._changed:
            self._generation += 1
            connections, self._by_place = list(self._by_place.values()), {}
        listener, self._listener = self._listener, None
        if listener is not None:
            _wake_accept(listener)
            listener.close()
        for connection in connections:
            _shut_down(connection)

    def close(self) -> None:
        self.hang_up()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _accept(
        self, listener: Listener, selector: selectors.BaseSelector, generation: int
    ) -> None:
        while generation == self._generation:
            try:
                connection = listener.accept()
                place = decode(connection.recv_bytes())
            except (OSError, EOFError, AuthenticationError):
                # The listener is closed, or a client without the token has been turned away.
                continue
            with self._changed:
                if generation != self._generation:
                    connection.close()
                    return
                self._by_place[place] = connection
                selector.register(connection, selectors.EVENT_READ, place)
                self._changed.notify_all()

    def _receive(self, selector: selectors.BaseSelector, generation: int) -> None:
        """Receive until all connections have ended."""
        messages = self.messages
        try:
            while generation == self._generation or selector.get_map():
                for key, _ in selector.select(_POLL_SECONDS):
                    connection: Connection = key.fileobj  # type: ignore[assignment]
                    try:
                        messages.put((key.data, connection.recv_bytes()))
                    except (EOFError, OSError):
                        selector.unregister(connection)
                        connection.close()
                        if generation == self._generation:
                            messages.put((key.data, LOST))
        except BaseException:  # noqa: BLE001 - no error vanishes in a thread
            _log.exception("the messages of the slots can no longer be received")
            messages.put(((0, 0), LOST))


def _driver_host() -> str:
    from pyspark import SparkContext

    context = SparkContext.getOrCreate()
    return str(context.getConf().get("spark.driver.host", "127.0.0.1"))


def _wake_accept(listener: Listener) -> None:
    """Closing a socket does not wake up a thread in accept; a connection does."""
    address = listener.address
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family) as waker:
        waker.connect(address)


def _shut_down(connection: Connection) -> None:
    """End a connection that a different thread reads from. That thread closes it."""
    with (
        contextlib.suppress(OSError),
        socket.socket(fileno=socket.dup(connection.fileno())) as end,
    ):
        end.shutdown(socket.SHUT_RDWR)
