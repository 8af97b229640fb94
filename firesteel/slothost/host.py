"""Slot host: the resident process that keeps slot i of all levels and jobs.

The first Spark task that needs it starts it (``client.py``). It ends when its owner, PySpark's
daemon, is gone, or when it has held no slot for some time.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from firesteel.processes import is_alive
from firesteel.protocol.messages import SlotAddress
from firesteel.protocol.program import PackedProgram
from firesteel.protocol.rows import BufferRow, rows_of
from firesteel.slothost.connection import BrokenHostError, Opening, Peer, keep_alive
from firesteel.slothost.registry import SlotRegistry
from firesteel.usercode.failures import InterruptedSlotError

TOKEN_VARIABLE = "FIRESTEEL_SLOT_HOST_TOKEN"
_BACKLOG = 64
_POLL_SECONDS = 0.5
_INTERRUPT_SECONDS = 1.0
_CLOSE_SECONDS = 3.0

_log = logging.getLogger("firesteel")


class SlotHost:
    """Serves the tasks of one slot index. A thread per connection runs one epoch of one slot."""

    def __init__(
        self,
        path: Path,
        token: str,
        owner_pid: int,
        idle_timeout: float,
        network_address: str | None = None,
    ) -> None:
        """``network_address`` is for tasks on other machines. None serves this machine only."""
        self._path = path
        self._token = token.encode()
        self._owner_pid = owner_pid
        self._idle_timeout = idle_timeout
        self._network_address = network_address
        self._registry = SlotRegistry()
        self._connections: set[Peer] = set()
        self._last_used = time.monotonic()

    def serve(self) -> None:
        """Accept connections until the host is no longer needed."""
        # The socket gets its name once it accepts connections.
        temporary = self._path.with_suffix(".new")
        # A host that was killed may have left both files.
        self._path.unlink(missing_ok=True)
        temporary.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(temporary))
            temporary.chmod(0o600)
            listener.listen(_BACKLOG)
            listener.settimeout(_POLL_SECONDS)
            try:
                if self._network_address is not None:
                    self._serve_network(self._network_address)
                temporary.rename(self._path)
                while self._is_needed():
                    with contextlib.suppress(TimeoutError):
                        self._accept(listener)
            finally:
                remove_socket(self._path)

    def _serve_network(self, address: str) -> None:
        """Also accept connections from other machines, at a port that the system chooses."""
        listener = socket.create_server((address, 0), backlog=_BACKLOG)
        host, port = listener.getsockname()[:2]
        file = location_file(self._path)
        temporary = file.with_suffix(".port-new")
        temporary.write_text(f"{host} {port}")
        temporary.rename(file)

        def accept() -> None:
            while True:
                try:
                    keep_alive(self._accept(listener))
                except OSError as error:
                    _log.warning("a connection from a different machine failed: %s", error)

        threading.Thread(target=accept, name="firesteel-network", daemon=True).start()

    def _accept(self, listener: socket.socket) -> socket.socket:
        connection, _ = listener.accept()
        connection.setblocking(True)
        threading.Thread(target=self._handle, args=(connection,), daemon=True).start()
        return connection

    def _is_needed(self) -> bool:
        if not is_alive(self._owner_pid):
            return False
        if self._connections or not self._registry.is_empty():
            self._last_used = time.monotonic()
        return time.monotonic() - self._last_used < self._idle_timeout

    def _handle(self, connection: socket.socket) -> None:
        peer = Peer(connection)
        self._connections.add(peer)
        try:
            if not peer.challenge(self._token):
                return
            self._run(peer, peer.receive())
        except (BrokenHostError, BrokenPipeError, ConnectionResetError, InterruptedSlotError):
            # The Spark task is gone. Its next attempt starts over.
            return
        finally:
            peer.close()
            self._connections.discard(peer)
            self._last_used = time.monotonic()

    def _run(self, peer: Peer, opening: Opening) -> None:
        # Jobs share hosts. The setting of the latest job counts.
        self._idle_timeout = opening.idle_timeout
        address = opening.address
        if address.by_force:
            self._free(address)
        needs_program = not self._registry.has_program(address.job_id, address.attempt)
        peer.send(needs_program)
        packed: PackedProgram | None = peer.receive() if needs_program else None
        if packed is not None and packed.placed.working_directory is not None:
            # Jobs with archives do not share hosts.
            os.chdir(packed.placed.working_directory)

        def load() -> PackedProgram:
            if packed is None:
                raise BrokenHostError("the job was closed while one of its tasks started")
            return packed

        entry = self._registry.entry(address, load)
        with entry.use() as slot:
            peer.send_batches(slot.run_epoch(address, _input_rows(peer, opening), opening.control))
            if slot.closed:
                self._registry.forget(address)

    def _free(self, address: SlotAddress) -> None:
        """Interrupt the slot, so that it can be closed. If its function blocks, end the process."""
        entry = self._registry.find(address)
        if entry is None or entry.interrupt(_INTERRUPT_SECONDS):
            return
        _log.warning(
            "level %d, slot %d: a function of the canceled job does not return, so its process ends",
            address.level,
            address.slot,
        )
        closing = threading.Thread(target=self._registry.close_idle, daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)
        remove_socket(self._path)
        os._exit(1)


def _input_rows(peer: Peer, opening: Opening) -> Iterator[BufferRow]:
    if opening.has_input:
        for batch in peer.receive_batches():
            yield from rows_of(batch)


def location_file(path: Path) -> Path:
    """Return the file with the network address of the host that serves a socket."""
    return path.with_suffix(".port")


def remove_socket(path: Path) -> None:
    """Remove the socket, its network address and its lock, and the directory if this was the last host in it."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        location_file(path).unlink(missing_ok=True)
        path.with_suffix(".lock").unlink(missing_ok=True)
        path.parent.rmdir()


def main(arguments: list[str]) -> None:
    """Serve a socket.

    The arguments are its path, the process id of the owner, the idle timeout, and on clusters the
    network address of this machine.
    """
    path, owner_pid, idle_timeout, *network_address = arguments
    # The process group receives SIGHUP when Spark's executor ends. The driver handles Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    pa.set_cpu_count(1)
    # Records are many and are rarely part of cycles, so the collector runs less often.
    gc.set_threshold(100_000, 20, 50)
    SlotHost(
        Path(path),
        os.environ.pop(TOKEN_VARIABLE),
        int(owner_pid),
        float(idle_timeout),
        *network_address,
    ).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
