"""Progress line of a command, on terminals only."""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
import time
from collections.abc import Iterator

_STEP_SECONDS = 0.2
_CLEAR = "\r\033[K"


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """Show ``text`` with the seconds that have passed, on standard error, until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(text, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(text: str, done: threading.Event) -> None:
    started = time.monotonic()
    for mark in itertools.cycle("|/-\\"):
        if done.wait(_STEP_SECONDS):
            break
        sys.stderr.write(f"{_CLEAR}{mark} {text} {time.monotonic() - started:.0f} s")
        sys.stderr.flush()
    sys.stderr.write(_CLEAR)
    sys.stderr.flush()
