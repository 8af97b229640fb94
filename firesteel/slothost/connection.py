"""Connection between a Spark task and a slot host: messages, Arrow batches, and the socket's directory."""

from __future__ import annotations

import contextlib
import hmac
import os
import pickle
import secrets
import socket
import stat
import struct
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from firesteel.errors import FiresteelError
from firesteel.protocol.messages import SlotAddress, SlotControl
from firesteel.protocol.rows import ARROW_SCHEMA

_LENGTH = struct.Struct("!Q")
_END = b"FIRESTEEL-END"
_BUFFER_SIZE = 1 << 18
_CHALLENGE_SIZE = 32


class BrokenHostError(ConnectionError):
    """The other side closed the connection in the middle of an epoch."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The first message of a task to a slot host.

    ``has_input`` says whether Arrow batches follow. The host stays for ``idle_timeout`` seconds
    after its last work.
    """

    address: SlotAddress
    control: SlotControl | None
    has_input: bool
    idle_timeout: float


class Peer:
    """One end of the connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = connection.makefile("rb", buffering=_BUFFER_SIZE)
        self._writer = connection.makefile("wb", buffering=_BUFFER_SIZE)

    def send_bytes(self, payload: bytes) -> None:
        try:
            self._writer.write(_LENGTH.pack(len(payload)))
            self._writer.write(payload)
            self._writer.flush()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise BrokenHostError("the other side has closed the connection") from error

    def receive_bytes(self) -> bytes:
        (length,) = _LENGTH.unpack(self._read_exactly(_LENGTH.size))
        return self._read_exactly(length)

    def challenge(self, token: bytes) -> bool:
        """Return True if the other side knows the token. The token itself does not travel."""
        question = secrets.token_bytes(_CHALLENGE_SIZE)
        self.send_bytes(question)
        return hmac.compare_digest(self.receive_bytes(), hmac.digest(token, question, "sha256"))

    def answer_challenge(self, token: str) -> None:
        self.send_bytes(hmac.digest(token.encode(), self.receive_bytes(), "sha256"))

    def send(self, message: object) -> None:
        self.send_bytes(pickle.dumps(message, protocol=5))

    def receive(self) -> Any:
        return pickle.loads(self.receive_bytes())

    def send_batches(self, batches: Iterable[pa.RecordBatch]) -> None:
        with pa.ipc.new_stream(pa.PythonFile(self._writer, "w"), ARROW_SCHEMA) as stream:
            for batch in batches:
                stream.write_batch(batch)
                self._writer.flush()
        self._writer.write(_END)
        self._writer.flush()

    def receive_batches(self) -> Iterator[pa.RecordBatch]:
        try:
            with pa.ipc.open_stream(pa.PythonFile(self._reader, "r")) as stream:
                yield from stream
        except (pa.ArrowInvalid, OSError) as error:
            raise BrokenHostError("the connection broke off within an Arrow stream") from error
        if self._read_exactly(len(_END)) != _END:
            raise BrokenHostError("the end mark is missing after an Arrow stream")

    def _read_exactly(self, length: int) -> bytes:
        try:
            payload = self._reader.read(length)
        except ConnectionResetError as error:
            raise BrokenHostError("the connection broke off") from error
        if len(payload) != length:
            raise BrokenHostError("the connection broke off")
        return bytes(payload)

    def break_off(self) -> None:
        """Cut the connection. The other side sees that its stream has ended early."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for resource in (self._writer, self._reader, self._connection):
            try:
                resource.close()
            except OSError:
                # The other side is gone, so nothing can be flushed.
                continue


# The other machine has gone if it does not answer for a minute: 30 s without traffic, three probes.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


def keep_alive(connection: socket.socket) -> None:
    """Send small messages at once, and notice a machine that is gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def address_facing(other: tuple[str, int]) -> str:
    """Return the address of this machine that a different machine sees. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(other)
        return str(probe.getsockname()[0])


# The path of a Unix socket has at most about 100 characters, including its directory and name.
_LONGEST_PARENT = 40


class PrivateDirectoryError(FiresteelError, RuntimeError):
    """The directory of the sockets belongs to a different user, or is open to others."""


def parent_of_sockets() -> Path:
    """Return the temporary directory, or a different one if its path is too long for a socket."""
    parent = tempfile.gettempdir()
    return Path(parent if len(parent) <= _LONGEST_PARENT else "/tmp")


def socket_directory(name: str) -> Path:
    """Return the directory of a name, whose path is short enough for a Unix socket."""
    return parent_of_sockets() / name


def make_private(directory: Path) -> Path:
    """Create a directory that only this user may enter, if it does not exist yet."""
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.stat()
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise PrivateDirectoryError(
            f"{directory} belongs to a different user or is open to others; remove it and try again"
        )
    return directory
