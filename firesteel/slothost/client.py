"""Client of a slot host, in a Spark task: finds or starts the host, and streams rows to and from it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from firesteel.errors import FiresteelError
from firesteel.protocol.messages import SlotAddress, SlotControl
from firesteel.protocol.program import PackedProgram
from firesteel.slothost.connection import (
    BrokenHostError,
    Opening,
    Peer,
    make_private,
    socket_directory,
)
from firesteel.slothost.host import TOKEN_VARIABLE

_START_SECONDS = 60.0
# A process that closes its connections in order to end does so within this time.
_END_SECONDS = 1.0

WHY_PROCESSES_DIE = (
    "A function of the job called os._exit(), a library crashed, or the system killed it, for "
    "example for lack of memory; its last output is in the executor's log"
)

# The hosts that this process has started, by socket.
_started: dict[Path, subprocess.Popen[bytes]] = {}


class HostIsGoneError(ConnectionError):
    """A slot must be closed by force, but its host has ended or never existed."""


class SlotHostError(FiresteelError, RuntimeError):
    """A slot host could not be started or reached."""


@dataclass(frozen=True, slots=True)
class HostSettings:
    """Settings of the slot hosts of one Spark application.

    ``application`` names the directory of their sockets. ``token`` protects them: a host accepts
    only tasks that know it.
    """

    application: str
    token: str
    idle_timeout: float = 60.0

    @property
    def directory(self) -> Path:
        return socket_directory(f"firesteel-{self.application}")


def run_in_host(
    settings: HostSettings,
    address: SlotAddress,
    load_program: Callable[[], PackedProgram],
    batches: Iterable[pa.RecordBatch] | None,
    control: SlotControl | None,
) -> Iterator[pa.RecordBatch]:
    """Run one epoch of a slot in its host, and yield the batches of its output.

    Args:
        settings: The hosts of the application.
        address: The slot and the epoch.
        load_program: Loads the program, if the host does not have it yet.
        batches: The input of the slot, or None for level 0.
        control: The control of the slot, or None if it is part of the input.

    Raises:
        HostIsGoneError: The slot must be closed by force and has no host. No input was taken.
    """
    peer = Peer(
        _connect_if_there(settings, address.slot)
        if address.by_force
        else _connect(settings, address.slot)
    )
    try:
        opening = Opening(address, control, batches is not None, settings.idle_timeout)
        if _needs_program(peer, settings, opening):
            peer.send(load_program())
        feeder = _Feeder(peer, batches) if batches is not None else None
        try:
            yield from peer.receive_batches()
        except BrokenHostError as error:
            if feeder is not None:
                feeder.raise_cause()
            raise _explained(error, settings, address.slot) from error
        if feeder is not None:
            feeder.finish()
    finally:
        peer.close()


def _needs_program(peer: Peer, settings: HostSettings, opening: Opening) -> bool:
    try:
        peer.send_bytes(settings.token.encode())
        peer.send(opening)
        return bool(peer.receive())
    except BrokenHostError as error:
        if opening.address.by_force:
            raise HostIsGoneError from error
        raise


def _explained(error: BrokenHostError, settings: HostSettings, slot: int) -> BrokenHostError:
    """Explain a connection that broke: most likely the host is dead."""
    process = _started.get(_socket_path(settings, slot))
    if process is None:
        # A different worker has started it, and only that worker can learn how it ended.
        return BrokenHostError(
            f"the process of slot {slot} died or closed its connection. {WHY_PROCESSES_DIE}"
        )
    try:
        code = process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        return BrokenHostError(f"the process of slot {slot} closed its connection: {error}")
    how = f"exit code {code}" if code >= 0 else f"signal {-code}, {_signal_name(-code)}"
    return BrokenHostError(f"the process of slot {slot} died ({how}). {WHY_PROCESSES_DIE}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


class _Feeder:
    """A thread that sends the input to the host, while the task reads the output of the host."""

    def __init__(self, peer: Peer, batches: Iterable[pa.RecordBatch]) -> None:
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._feed, args=(peer, batches), daemon=True)
        self._thread.start()

    def _feed(self, peer: Peer, batches: Iterable[pa.RecordBatch]) -> None:
        try:
            peer.send_batches(batches)
        except Exception as error:  # noqa: BLE001 - finish() raises it in the task's thread
            self._error = error
            # Otherwise the host would wait for the rest of the input, and this task for the host.
            peer.break_off()

    def raise_cause(self) -> None:
        """Raise the error of the input, if that is the reason why the connection broke."""
        if self._error is not None and not isinstance(self._error, ConnectionError):
            raise self._error

    def finish(self) -> None:
        self._thread.join()
        if self._error is not None:
            raise self._error


def _connect_if_there(settings: HostSettings, slot: int) -> socket.socket:
    connection = _try_connect(_socket_path(settings, slot))
    if connection is None:
        raise HostIsGoneError
    return connection


def _connect(settings: HostSettings, slot: int) -> socket.socket:
    path = _socket_path(settings, slot)
    make_private(path.parent)
    connection = _try_connect(path)
    if connection is not None:
        return connection
    # Only one task starts the host. The others find it once they hold the lock.
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context(path.with_suffix(".lock").open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = _try_connect(path)
        if connection is not None:
            return connection
        process = _started[path] = _start(settings, path)
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            connection = _try_connect(path)
            if connection is not None:
                return connection
            if process.poll() is not None:
                raise SlotHostError(
                    f"the host of slot {slot} ended with code {process.returncode} during its start; "
                    "its output is in the executor's log"
                )
            time.sleep(0.01)
    raise SlotHostError(f"the host of slot {slot} did not start within {_START_SECONDS:.0f} s")


def _socket_path(settings: HostSettings, slot: int) -> Path:
    return settings.directory / f"slot-{slot}.sock"


def _try_connect(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return connection


def _start(settings: HostSettings, path: Path) -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    environment[TOKEN_VARIABLE] = settings.token
    # The host can import everything that Spark shipped to this worker.
    environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    # The host stays in the process group of PySpark's daemon, the parent of this worker, and watches it.
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "firesteel.slothost.host",
            str(path),
            str(os.getppid()),
            str(settings.idle_timeout),
        ],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
    )
