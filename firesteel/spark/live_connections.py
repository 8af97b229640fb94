"""The driver's connections to live slots: controls go out, acks and output come back."""

from __future__ import annotations

import contextlib
import logging
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from itertools import count
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from queue import SimpleQueue
from typing import Any, Final

from firesteel.errors import FiresteelError
from firesteel.filesystems.scratch import ScratchDirectory
from firesteel.protocol.driver_address import DriverAddress
from firesteel.protocol.live_round import Place
from firesteel.protocol.messages import Credit, Credits, Message, decode, encode
from firesteel.protocol.reports import (
    CREDITS_MARK,
    REPORT_MARK,
    SlotAnswer,
    SlotQuestion,
    SlotReport,
)
from firesteel.slothost.connection import parent_of_sockets
from firesteel.slothost.request_server import wake_accept

_log = logging.getLogger("firesteel")

#: The message of a slot whose connection has ended.
LOST: Final = b""
_BACKLOG = 512
# New connections are noticed within this time at the latest.
_POLL_SECONDS = 0.5
# The pause after an error of the listener, for example too many open files.
_PAUSE_SECONDS = 0.2


class SlotIsGoneError(FiresteelError):
    """A slot cannot answer a question, because it does not run."""


class Connections:
    """Accepts the connections of slots, and receives their messages in one thread.

    ``messages`` has pairs of a place and a message. A place of None only wakes the reader up.
    ``host`` is the address at which other machines reach the driver, or None if all slots are here.
    """

    def __init__(self, job_id: str, host: str | None) -> None:
        self._job_id = job_id
        self._host = host
        self.messages: SimpleQueue[tuple[Place | None, bytes]] = SimpleQueue()
        self._changed = threading.Condition()
        # The driver sends messages, and the thread that receives passes credits on.
        self._sending = threading.Lock()
        self._by_place: dict[Place, Connection] = {}
        self._listener: Listener | None = None
        self._directory: ScratchDirectory | None = None
        # Counts the queries. Connections of an earlier one are turned away.
        self._generation = 0
        #: Takes reports as soon as they arrive, in the thread that receives.
        self.take_report: Callable[[SlotReport], None] = lambda _: None
        self._numbers = count()
        self._asked: dict[int, tuple[Place, Future[Any]]] = {}

    def open(self) -> DriverAddress:
        """Listen for the slots of a new query."""
        token = secrets.token_hex(16)
        address: str | tuple[str, int]
        if self._host is None:
            if self._directory is None:
                # Two masters of a job may live on one machine for a moment.
                self._directory = ScratchDirectory(f"live-{self._job_id[:6]}", parent_of_sockets())
            address = str(self._directory.path / f"{self._generation}.sock")
        else:
            address = (self._host, 0)
        family = "AF_UNIX" if self._host is None else "AF_INET"
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

    def send(self, place: Place, message: Message | SlotQuestion) -> None:
        """Send a message. A connection that is lost reports itself."""
        with contextlib.suppress(OSError, KeyError), self._sending:
            self._by_place[place].send_bytes(encode(message))

    def ask(self, place: Place, what: str, arguments: Mapping[str, Any]) -> Future[Any]:
        """Ask the process of a slot. The future fails if the connection ends first."""
        answer: Future[Any] = Future()
        with self._changed:
            if place not in self._by_place:
                answer.set_exception(SlotIsGoneError("the slot is not running"))
                return answer
            number = next(self._numbers)
            self._asked[number] = (place, answer)
        self.send(place, SlotQuestion(number, what, arguments))
        return answer

    def _take(self, message: SlotReport | SlotAnswer) -> None:
        if isinstance(message, SlotReport):
            self.take_report(message)
            return
        with self._changed:
            _, answer = self._asked.pop(message.number, (None, None))
        if answer is not None:
            answer.set_result(message.answer)

    def _forget_questions(self, place: Place | None = None) -> None:
        """Fail the questions to a slot, or to all slots, that have no answer yet."""
        with self._changed:
            lost = [n for n, (asked, _) in self._asked.items() if place in (None, asked)]
            answers = [self._asked.pop(number)[1] for number in lost]
        for answer in answers:
            answer.set_exception(SlotIsGoneError("the slot has ended"))

    def wake_up(self) -> None:
        self.messages.put((None, b""))

    def hang_up(self) -> None:
        """Close the connections of the query, and listen no more."""
        with self._changed:
            self._generation += 1
            connections, self._by_place = list(self._by_place.values()), {}
        self._forget_questions()
        listener, self._listener = self._listener, None
        if listener is not None:
            wake_accept(listener)
            listener.close()
        for connection in connections:
            _shut_down(connection)

    def close(self) -> None:
        self.hang_up()
        if self._directory is not None:
            self._directory.remove()

    def _accept(
        self, listener: Listener, selector: selectors.BaseSelector, generation: int
    ) -> None:
        while generation == self._generation:
            try:
                connection = listener.accept()
                place = decode(connection.recv_bytes())
            except (EOFError, AuthenticationError):
                # A client without the token has been turned away.
                continue
            except Exception as error:  # noqa: BLE001 - no error vanishes in a thread
                if generation == self._generation:
                    _log.error("the connection of a slot could not be accepted: %s", error)
                    time.sleep(_PAUSE_SECONDS)
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
                passed_on: dict[Place, list[Credit]] = {}
                for key, _ in selector.select(_POLL_SECONDS):
                    connection: Connection = key.fileobj  # type: ignore[assignment]
                    try:
                        message = connection.recv_bytes()
                        if message.startswith(REPORT_MARK):
                            self._take(decode(message[len(REPORT_MARK) :]))
                        elif message.startswith(CREDITS_MARK):
                            for place, some in decode(message[len(CREDITS_MARK) :]).items():
                                passed_on.setdefault(place, []).extend(some)
                        else:
                            messages.put((key.data, message))
                    except (EOFError, OSError):
                        selector.unregister(connection)
                        connection.close()
                        self._forget_questions(key.data)
                        if generation == self._generation:
                            messages.put((key.data, LOST))
                if generation == self._generation:
                    for place, some in passed_on.items():
                        self.send(place, Credits(tuple(some)))
        except BaseException:  # noqa: BLE001 - no error vanishes in a thread
            _log.exception("the messages of the slots can no longer be received")
            messages.put(((0, 0), LOST))


def _shut_down(connection: Connection) -> None:
    """End a connection that a different thread reads from. That thread closes it."""
    with (
        contextlib.suppress(OSError),
        socket.socket(fileno=socket.dup(connection.fileno())) as end,
    ):
        end.shutdown(socket.SHUT_RDWR)
