"""The threads of a live task: what they cannot handle fails the slot."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.protocol.messages import EndEpoch, encode
from firesteel.spark.live_inbox import ThreadedInbox
from firesteel.spark.live_task import _Messages
from firesteel.spark.slot_task import spare_imports
from firesteel.task.live_slot import InboxClosedError

_SECONDS = 20.0


def test_a_message_that_cannot_be_read_fails_the_slot_and_the_next_one_arrives() -> None:
    """For example a split of a class that the worker cannot import."""
    driver, task = Pipe()
    ended = threading.Event()
    mailbox = ThreadedInbox(iter(_until(ended)))
    monitor: Any = SimpleNamespace(stop=lambda: None)
    _Messages(task, mailbox, (0, 0), monitor).start()
    driver.send_bytes(b"cno_such_module\nSplit\n.")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        mailbox.take(_SECONDS)
    driver.send_bytes(encode(EndEpoch(7)))
    assert mailbox.take(_SECONDS) == EndEpoch(7)
    driver.close()
    with pytest.raises(InboxClosedError):
        mailbox.take(_SECONDS)
    ended.set()


class _Node:
    """An object of a cycle, as slots consist of."""

    def __init__(self) -> None:
        self.own = self


def test_a_worker_frees_the_slot_of_an_earlier_task() -> None:
    spare_imports()
    slot = _Node()
    freed = weakref.ref(slot)
    # The next task begins while a thread of the earlier one ends.
    spare_imports()
    del slot
    gc.collect()
    assert freed() is None


def _until(ended: threading.Event) -> Iterator[Any]:
    """Input without rows, which ends with the test."""
    ended.wait(_SECONDS)
    yield from ()
