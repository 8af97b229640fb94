"""SocketTextStreamSource: text from a TCP server, which cannot be read again."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any

from firesteel.common.typeinfo import Types
from firesteel.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
)

__all__ = ["SocketTextStreamSource"]

_CONNECT_TIMEOUT = 10.0
_RETRY_DELAY = 0.5
_RECEIVE_BYTES = 64 * 1024


class SocketTextStreamSource(Source):
    r"""Texts that a server sends, separated by ``delimiter``, decoded as UTF-8.

    The source ends when the server closes the connection. With ``max_retry``, it connects again
    that many times less one, half a second apart, as in Flink; -1 means forever. With the
    delimiter ``"\n"`` a ``"\r"`` before it is dropped. A last text without delimiter counts.

    There is one reader for any parallelism. After a failure the reader connects again, and texts
    that were received but not processed are lost.
    """

    replayable = False

    def __init__(self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0) -> None:
        _require("hostname", hostname, str)
        _require("port", port, int)
        _require("delimiter", delimiter, str)
        _require("max_retry", max_retry, int)
        if not 0 < port < 65536:
            raise ValueError(f"A port must be between 1 and 65535, got {port}")
        if not delimiter:
            raise ValueError("The delimiter of a socket text stream must not be empty")
        if max_retry < -1:
            raise ValueError(f"max_retry must be -1 (forever), 0 or more, got {max_retry}")
        self._hostname = hostname
        self._port = port
        self._delimiter = delimiter
        self._max_retry = max_retry

    def get_boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return _SocketEnumerator(f"{self._hostname}:{self._port}", state)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _SocketReader(self._hostname, self._port, self._delimiter, self._max_retry)

    def get_produced_type(self) -> Any:
        return Types.STRING()

    def __repr__(self) -> str:
        return f"SocketTextStreamSource({self._hostname}:{self._port})"


def _require(what: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"socket_text_stream: {what} must be {kind.__name__}, but it is {value!r}")


class _SocketEnumerator(SplitEnumerator):
    def __init__(self, address: str, state: Any) -> None:
        self._address = address
        self._discovered = bool(state and state["discovered"])

    def discover_splits(self) -> Sequence[SourceSplit]:
        if self._discovered:
            return []
        self._discovered = True
        return [SourceSplit(self._address)]

    def is_complete(self) -> bool:
        return self._discovered

    def snapshot_state(self) -> Any:
        return {"discovered": self._discovered}


class _SocketReader(SourceReader):
    def __init__(self, hostname: str, port: int, delimiter: str, max_retry: int) -> None:
        self._address = (hostname, port)
        self._delimiter = delimiter.encode()
        self._max_retry = max_retry
        self._split: SourceSplit | None = None
        self._connection: socket.socket | None = None
        self._disconnects = 0
        self._retry_at = 0.0
        self._received = bytearray()
        self._texts: list[str] = []

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        if splits:
            self._split = splits[0]

    def read(self, limit: int) -> list[Any]:
        while self._split is not None and len(self._texts) < limit:
            if not self._receive():
                break
        texts = list(islice(self._texts, limit))
        del self._texts[: len(texts)]
        return texts

    def snapshot_splits(self) -> list[SourceSplit]:
        if self._split is not None:
            return [self._split]
        # The server is gone, but the last texts have not been read yet.
        return [SourceSplit(f"{self._address[0]}:{self._address[1]}")] if self._texts else []

    def next_read_delay(self) -> float:
        if self._texts:
            return 0.0
        return max(0.02, self._retry_at - time.monotonic())

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _receive(self) -> bool:
        """Take the data that has arrived. Return False if there is none at the moment."""
        if self._connection is None and not self._connect():
            return False
        assert self._connection is not None
        try:
            data = self._connection.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            data = b""
        if not data:
            self.close()
            self._lost_connection()
            return False
        self._received += data
        if self._delimiter in self._received:
            *complete, rest = bytes(self._received).split(self._delimiter)
            self._received = bytearray(rest)
            self._texts += map(self._decode, complete)
        return True

    def _connect(self) -> bool:
        if time.monotonic() < self._retry_at:
            return False
        try:
            connection = socket.create_connection(self._address, timeout=_CONNECT_TIMEOUT)
        except OSError as error:
            if self._disconnects:
                self._lost_connection()
                return False
            hostname, port = self._address
            raise ConnectionError(
                f"Cannot connect to the text server {hostname}:{port}: {error}. "
                f"It must listen before the job starts (for example: nc -lk {port})."
            ) from error
        connection.setblocking(False)
        self._connection = connection
        return True

    def _lost_connection(self) -> None:
        self._disconnects += 1
        if self._max_retry == -1 or self._disconnects < self._max_retry:
            self._retry_at = time.monotonic() + _RETRY_DELAY
            return
        self._split = None
        if self._received:
            self._texts.append(self._decode(bytes(self._received)))
            self._received.clear()

    def _decode(self, data: bytes) -> str:
        if self._delimiter == b"\n":
            data = data.removesuffix(b"\r")
        return data.decode("utf-8", errors="replace")
