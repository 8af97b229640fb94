"""Logs of a process: Firesteel's log level, and the last lines for the dashboard and REST."""

from __future__ import annotations

import copy
import io
import logging
import sys
import threading
from collections import deque
from typing import Any, Self, TextIO

__all__ = ["LogBuffer", "ProcessLogs", "log_to_standard_error", "set_log_level"]

_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "OFF": logging.CRITICAL + 1,
}

# One line: time, level, the place (job, vertex and subtask), logger and message.
_LINE_FORMAT = "%(asctime)s %(levelname)-5s [{}] %(name)s: %(message)s"
# The most characters of a buffer. Older text is dropped.
_MOST_CHARACTERS = 1 << 20


class LogBuffer:
    """The end of a text that grows.

    >>> buffer = LogBuffer(most=8)
    >>> buffer.write("first "); buffer.write("second")
    >>> buffer.text()
    'second'
    """

    def __init__(self, most: int = _MOST_CHARACTERS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._parts: deque[str] = deque()
        self._size = 0

    def write(self, text: str) -> None:
        with self._lock:
            self._parts.append(text[-self._most :])
            self._size += len(self._parts[-1])
            while self._size > self._most:
                self._size -= len(self._parts.popleft())

    def text(self) -> str:
        with self._lock:
            return "".join(self._parts)

    @property
    def size(self) -> int:
        return self._size


class _BufferHandler(logging.Handler):
    """Writes log records to a buffer, and warnings also to ``errors``."""

    def __init__(self, buffer: LogBuffer, place: str, errors: TextIO | None) -> None:
        super().__init__()
        self._buffer = buffer
        self._errors = errors
        self.setFormatter(logging.Formatter(_LINE_FORMAT.format(place.replace("%", "%%"))))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record) + "\n"
            self._buffer.write(line)
            if self._errors is not None and record.levelno >= logging.WARNING:
                self._errors.write(line)
                self._errors.flush()
        except Exception:  # noqa: BLE001 - logging's own rule for errors of handlers
            self.handleError(record)


class _Tee(io.TextIOBase):
    """Writes to a stream, and keeps a copy. All other methods are those of the stream."""

    def __init__(self, stream: TextIO, buffer: LogBuffer) -> None:
        self._stream = stream
        self._buffer = buffer

    def write(self, text: str, /) -> int:
        # First the stream, which refuses what is no text.
        written = self._stream.write(text)
        self._buffer.write(text)
        return written

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ProcessLogs:
    """Copies of bounded size of the log and the output of this process, within a ``with`` block.

    Args:
        place: The job, vertex and subtask of the log lines, or the role of the process.
        owned: True in a process of Firesteel: the log has all lines from INFO on, and warnings also
            go to standard error. False in a process whose program sets up logging. There the log
            has the lines that the program's levels allow, and levels and handlers do not change.
    """

    def __init__(self, place: str, *, owned: bool) -> None:
        self.log = LogBuffer()
        self.output = LogBuffer()
        self._owned = owned
        self._handler = _BufferHandler(self.log, place, sys.stderr if owned else None)
        self._before = (sys.stdout, sys.stderr)
        self._level = logging.getLogger().level
        self._factory = logging.getLogRecordFactory()

    def __enter__(self) -> Self:
        if self._owned:
            root = logging.getLogger()
            root.addHandler(self._handler)
            if root.level > logging.INFO:
                root.setLevel(logging.INFO)
        else:
            # A handler would turn off ``logging.basicConfig`` and Python's own handler for warnings.
            self._factory = logging.getLogRecordFactory()
            logging.setLogRecordFactory(self._copy_record)
        sys.stdout = _Tee(self._before[0], self.output)
        sys.stderr = _Tee(self._before[1], self.output)
        return self

    def _copy_record(self, *arguments: Any, **options: Any) -> logging.LogRecord:
        record = self._factory(*arguments, **options)
        self._handler.handle(copy.copy(record))
        return record

    def __exit__(self, *_: object) -> None:
        if self._owned:
            root = logging.getLogger()
            root.removeHandler(self._handler)
            root.setLevel(self._level)
        elif logging.getLogRecordFactory() == self._copy_record:
            logging.setLogRecordFactory(self._factory)
        sys.stdout, sys.stderr = self._before

    def text(self, name: str) -> str:
        """Return the text of "log" or "out"."""
        return (self.log if name == "log" else self.output).text()


def log_to_standard_error(place: str) -> None:
    """Write the log of this process to standard error from INFO on, in the format of task logs.

    Args:
        place: The job of the lines.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_LINE_FORMAT.format(place.replace("%", "%%"))))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    # It logs each of its connections.
    logging.getLogger("py4j").setLevel(logging.WARNING)


class _StandardError(logging.StreamHandler):  # type: ignore[type-arg]  # its stream is sys.stderr
    """Writes to standard error unless the program has handlers of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            super().emit(record)


def set_log_level(level: str) -> None:
    """Set the level to a value of the setting ``firesteel.log-level``.

    Without a handler Python shows only warnings and errors, so the logger gets one.
    """
    logger = logging.getLogger("firesteel")
    logger.setLevel(_LEVELS[level.upper()])
    if not logger.hasHandlers():
        handler = _StandardError()
        handler.setFormatter(
            logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
        )
        logger.addHandler(handler)
