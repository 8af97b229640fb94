from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from firesteel.processes import (
    cpu_seconds,
    free_memory,
    is_alive,
    memory_of,
    physical_memory,
    release_memory,
    thread_stacks,
)


def test_a_process_is_alive_until_it_has_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert is_alive(os.getpid())
    assert is_alive(child.pid)
    child.communicate(b"\n")
    assert not is_alive(child.pid)


def test_the_figures_of_a_process_are_those_of_the_system() -> None:
    own = memory_of(os.getpid())
    assert 1 << 20 < own.resident < own.limit == physical_memory()
    assert 0 < free_memory() <= physical_memory()
    assert cpu_seconds(os.getpid()) == pytest.approx(time.process_time(), abs=1.0)


def test_memory_that_threads_have_freed_goes_back_to_the_system() -> None:
    """A small block at the end of each heap keeps the C library from shrinking it."""
    kept: list[bytes] = []

    def allocate() -> None:
        blocks = [bytes(4_000) for _ in range(5_000)]
        kept.append(bytes(4_000))
        del blocks

    threads = [threading.Thread(target=allocate) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    before = memory_of(os.getpid()).resident
    release_memory()
    if sys.platform == "linux":
        assert memory_of(os.getpid()).resident < before - (5 << 20)


def test_a_process_that_is_gone_has_no_figures() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert memory_of(child.pid).resident == 0
    assert cpu_seconds(child.pid) == 0.0


def test_the_stacks_of_all_threads_are_shown() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait, name="waiting one")
    thread.start()
    stacks = {info["threadName"]: info["stringifiedThreadInfo"] for info in thread_stacks()}
    done.set()
    thread.join()
    assert stacks["waiting one"].startswith(f'"waiting one" Id={thread.ident}\n')
    assert "self._cond.wait" in stacks["waiting one"]
    assert "thread_stacks()" in stacks["MainThread"]
