"""A full snapshot that is written by a thread, while the slot goes on working."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from firesteel.state.changelog import Segment

_log = logging.getLogger("firesteel")

# Pickling holds the interpreter's lock. Between two chunks of this size others get their turn.
CHUNK_ENTRIES = 5_000
_PATIENCE_SECONDS = 5.0


class FullSnapshot:
    """``write`` makes the segment, in the thread; now and then it calls what it is given.

    That call ends it if nobody wants the snapshot any more.
    """

    def __init__(self, write: Callable[[Callable[[], None]], Segment]) -> None:
        self._write = write
        self._abandoned = threading.Event()
        self._done = threading.Event()
        self._segment: Segment | None = None
        # How long it took, once it is done.
        self.seconds = 0.0
        self._lock = threading.Lock()
        self._thread = threading.Thread(
            target=self._run, name="firesteel-full-snapshot", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        started = time.perf_counter()
        try:
            segment = self._write(self._go_on)
        except _Abandoned:
            segment = None
        except Exception:  # noqa: BLE001 - whatever a store may raise
            # The log goes on, so nothing is lost; the next epoch tries again.
            _log.exception("a full snapshot could not be written")
            segment = None
        with self._lock:
            self._segment = segment
            self.seconds = time.perf_counter() - started
            self._done.set()
        if self._abandoned.is_set() and segment is not None:
            delete_files(segment.own_paths())

    def _go_on(self) -> None:
        if self._abandoned.is_set():
            raise _Abandoned

    def is_done(self) -> bool:
        return self._done.is_set()

    def wait(self, seconds: float) -> bool:
        """For tests."""
        return self._done.wait(seconds)

    def segment(self) -> Segment | None:
        """What was written; None if it failed."""
        return self._segment

    def abandon(self) -> None:
        """Nobody wants it any more; what was written is deleted."""
        with self._lock:
            self._abandoned.set()
            segment, self._segment = self._segment, None
        if segment is not None:
            delete_files(segment.own_paths())
        # It ends with its current chunk, unless the storage hangs.
        self._thread.join(_PATIENCE_SECONDS)


class _Abandoned(Exception):
    """Ends the thread."""


def delete_files(paths: set[str]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            Path(path).unlink()
