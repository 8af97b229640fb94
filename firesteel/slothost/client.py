"""Client of a slot host, in a Spark task: finds or starts the host, and streams rows to and from it.

On a cluster, Spark may give the task of a slot to a different machine in every epoch. The slot stays
where it is: the task looks its host up in the slot directory of the driver, and exchanges rows with
it over the network.
"""

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
    address_facing,
    keep_alive,
    make_private,
    socket_directory,
)
from firesteel.slothost.directory import Location, claim, place_of
from firesteel.slothost.host import TOKEN_VARIABLE, location_file

_START_SECONDS = 60.0
# A machine that does not answer within this time has lost its slots.
_CONNECT_SECONDS = 10.0
# The number of tries to reach the host of a slot.
_TRIES = 5
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
    only tasks that know it. ``slot_directory`` is the address of the driver's slot directory. It is
    None if all tasks run on one machine.
    """

    application: str
    token: str
    idle_timeout: float = 60.0
    slot_directory: Location | None = None

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
    opening = Opening(address, control, batches is not None, settings.idle_timeout)
    peer, needs_program = _open(settings, opening)
    try:
        if needs_program:
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


def _open(settings: HostSettings, opening: Opening) -> tuple[Peer, bool]:
    """Connect to the host of the slot. Return True if it needs the program of the job."""
    address = opening.address
    if settings.slot_directory is None:
        connection = (
            _connect_if_there(settings, address.slot)
            if address.by_force
            else _connect(settings, address.slot)
        )
        return _greeted(connection, settings, opening)
    return _open_anywhere(settings, settings.slot_directory, opening)


def _open_anywhere(
    settings: HostSettings, directory: Location, opening: Opening
) -> tuple[Peer, bool]:
    """Connect to the slot on the machine where it lives. A slot without a home moves to this one."""
    address = opening.address
    place = place_of(address)
    home = claim(directory, settings.token, place)
    for _ in range(_TRIES):
        opened = None if home is None else _open_at(home, settings, opening)
        if opened is not None:
            return opened
        if address.by_force:
            raise HostIsGoneError
        _connect(settings, address.slot).close()
        own = _own_location(settings, address.slot)
        home = claim(directory, settings.token, place, own, instead_of=home)
    raise SlotHostError(f"no host of slot {address.slot} stayed alive long enough to be reached")


def _open_at(home: Location, settings: HostSettings, opening: Opening) -> tuple[Peer, bool] | None:
    """Return None if the host has ended, or does not have the job."""
    slot = opening.address.slot
    is_here = home == _own_location(settings, slot)
    connection = _try_connect(_socket_path(settings, slot)) if is_here else _try_remote(home)
    if connection is None:
        return None
    try:
        peer, needs_program = _greeted(connection, settings, opening)
    except (BrokenHostError, HostIsGoneError):
        return None
    if needs_program and not is_here:
        # Only a task on the machine of the host knows the paths of the job's files there.
        peer.close()
        return None
    return peer, needs_program


def _greeted(
    connection: socket.socket, settings: HostSettings, opening: Opening
) -> tuple[Peer, bool]:
    """Show the token and send the opening. Return True if the host needs the program of the job."""
    peer = Peer(connection)
    try:
        peer.answer_challenge(settings.token)
        peer.send(opening)
        return peer, bool(peer.receive())
    except BrokenHostError as error:
        peer.close()
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


def _try_remote(location: Location) -> socket.socket | None:
    try:
        connection = socket.create_connection(location, _CONNECT_SECONDS)
    except OSError:
        return None
    connection.settimeout(None)
    keep_alive(connection)
    return connection


def _own_location(settings: HostSettings, slot: int) -> Location | None:
    """Return the network address of the host on this machine, or None if there is none."""
    try:
        host, port = location_file(_socket_path(settings, slot)).read_text().split()
    except FileNotFoundError:
        return None
    return host, int(port)


def _start(settings: HostSettings, path: Path) -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    environment[TOKEN_VARIABLE] = settings.token
    directory = settings.slot_directory
    # On a cluster, tasks of other machines reach the host at the address that faces the driver.
    listens_on = [] if directory is None else [address_facing(directory)]
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
            *listens_on,
        ],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr.fileno(),
    )
