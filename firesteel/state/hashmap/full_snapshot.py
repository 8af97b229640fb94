"""A full snapshot that is written by a thread, while the slot goes on working."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from firesteel.state.changelog import Segment
from firesteel.state.changes import Changes

_log = logging.getLogger("firesteel")

# Pickling holds the interpreter's lock. Between two chunks of this size others get their turn.
CHUNK_ENTRIES = 5_000
_PATIENCE_SECONDS = 5.0


class Frozen(Protocol):
    """A table at one moment. Making one copies references only."""

    def chunks(self, entries: int) -> Iterator[Changes]: ...


class FullSnapshot:
    """``write`` makes a segment of the frozen tables' changes; it runs in the thread."""

    def __init__(
        self, frozen: Iterable[Frozen], write: Callable[[Iterator[Changes]], Segment]
    ) -> None:
        self._frozen = list(frozen)
        self._write = write
        self._abandoned = threading.Event()
        self._done = threading.Event()
        self._segment: Segment | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(
            target=self._run, name="firesteel-full-snapshot", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        try:
            segment = self._write(self._chunks())
        except _Abandoned:
            segment = None
        except Exception:  # noqa: BLE001 - whatever a store may raise
            # The log goes on, so nothing is lost; the next epoch tries again.
            _log.exception("a full snapshot could not be written")
            segment = None
        with self._lock:
            self._segment = segment
            self._frozen = []
            self._done.set()
        if self._abandoned.is_set() and segment is not None:
            _delete(segment)

    def _chunks(self) -> Iterator[Changes]:
        for table in self._frozen:
            for chunk in table.chunks(CHUNK_ENTRIES):
                if self._abandoned.is_set():
                    raise _Abandoned
                yield chunk

    def is_done(self) -> bool:
        return self._done.is_set()

    def wait(self, seconds: float) -> bool:
        """For tests, and before closing."""
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
            _delete(segment)
        # It ends with its current chunk, unless the storage hangs.
        self._thread.join(_PATIENCE_SECONDS)


class _Abandoned(Exception):
    """Ends the thread."""


def _delete(segment: Segment) -> None:
    for path in segment.paths():
        with contextlib.suppress(FileNotFoundError):
            Path(path).unlink()
