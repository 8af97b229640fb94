"""The driver's end of the clock: a server for the next epoch and its plan."""

from __future__ import annotations

import contextlib
import logging
import secrets
import shutil
import socket
import threading
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from typing import Protocol

from firesteel.protocol.execution import EpochPlan
from firesteel.protocol.messages import encode
from firesteel.slothost.connection import make_private, socket_directory

_log = logging.getLogger("firesteel")


class EpochProvider(Protocol):
    def next_epoch(self, after: int) -> int:
        """Wait until an epoch is due; return ``after`` itself if none follows."""

    def plan_of(self, epoch: int) -> EpochPlan:
        """Return the plan of an epoch that is due."""


class EpochServer:
    """Listens on a socket in a private directory, and asks clients for a token."""

    def __init__(self, job_id: str, provider: EpochProvider) -> None:
        self._directory = make_private(socket_directory(f"firesteel-clock-{job_id[:12]}"))
        self.address = str(self._directory / "clock.sock")
        self.token = secrets.token_hex(16)
        self._provider = provider
        self._listener = Listener(self.address, family="AF_UNIX", authkey=self.token.encode())
        self._closed = False
        threading.Thread(target=self._accept, name="firesteel-clock", daemon=True).start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection = self._listener.accept()
            except (OSError, EOFError, AuthenticationError):
                # The server is closed, or a client without the token has been turned away.
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        try:
            with contextlib.suppress(EOFError, OSError), connection:
                while True:
                    question, epoch = connection.recv()
                    if question == "next":
                        connection.send(self._provider.next_epoch(epoch))
                    else:
                        connection.send(partition_payloads(self._provider.plan_of(epoch)))
        except Exception:  # noqa: BLE001 - no error vanishes in a thread
            # The client finds its connection closed, and the query fails.
            _log.exception("the epoch server could not answer a request from Spark")

    def close(self) -> None:
        self._closed = True
        # Closing a socket does not wake up a thread in accept; a connection does.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as waker:
            waker.connect(self.address)
        self._listener.close()
        shutil.rmtree(self._directory, ignore_errors=True)


def partition_payloads(plan: EpochPlan) -> list[bytes]:
    """Return a partition per slot of level 0. Each also carries a share of the other controls."""
    first = plan.of_level(0)
    others = [control for control in plan.controls if control.address.level > 0]
    return [encode((own, others[index :: len(first)])) for index, own in enumerate(first)]
