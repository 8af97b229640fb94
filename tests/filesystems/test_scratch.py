"""Scratch directories of processes that live, end and are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.filesystems.scratch import ScratchDirectory, sweep
from tests.thoroughness import examples

_PROGRAM = """
import sys
from firesteel.filesystems.scratch import ScratchDirectory
held = ScratchDirectory("test", sys.argv[1])
(held.path / "data").mkdir()
print(held.path, flush=True)
sys.stdin.readline()
"""


class Owner:
    """A process that has a scratch directory until it is told to end."""

    def __init__(self, parent: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.path = Path(self._process.stdout.readline().strip())

    def end(self, *, kill: bool) -> None:
        if self._process.returncode is not None:
            return
        if kill:
            self._process.send_signal(signal.SIGKILL)
        self._process.communicate("\n")


@contextmanager
def owners(parent: Path, count: int) -> Iterator[list[Owner]]:
    started = [Owner(parent) for _ in range(count)]
    try:
        yield started
    finally:
        for one in started:
            one.end(kill=True)


def test_a_directory_goes_with_its_object(tmp_path: Path) -> None:
    scratch = ScratchDirectory("test", tmp_path / "new")
    assert scratch.path.parent == tmp_path / "new"
    assert scratch.path.name.startswith("firesteel-test-")
    assert scratch.path.stat().st_mode & 0o077 == 0
    scratch.remove()
    scratch.remove()
    assert not scratch.path.exists()
    path = ScratchDirectory("test", tmp_path).path
    assert not path.exists()


def test_a_fork_does_not_remove_the_directory_of_its_parent(tmp_path: Path) -> None:
    scratch = ScratchDirectory("test", tmp_path)
    child = os.fork()
    if child == 0:
        scratch.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert scratch.path.exists()


def test_directories_that_have_no_lock_or_belong_to_others_stay(tmp_path: Path) -> None:
    """One of a process that has just made it, a link, and one of a different machine."""
    with owners(tmp_path, 1) as (owner,):
        owner.end(kill=True)
    (tmp_path / "firesteel-new").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".lock").write_text((owner.path / ".lock").read_text())
    (tmp_path / "firesteel-link").symlink_to(tmp_path / "other")
    (tmp_path / "firesteel-far").mkdir()
    (tmp_path / "firesteel-far" / ".lock").write_text("a different machine")
    sweep(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"firesteel-new", "other", "firesteel-link", "firesteel-far"}


@given(st.lists(st.sampled_from(["kill", "end", "live"]), min_size=1, max_size=4), st.data())
@settings(max_examples=examples(6), deadline=None)
def test_a_new_process_sweeps_what_killed_ones_left_and_nothing_else(
    fates: list[str], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        parent = Path(directory)
        with owners(parent, len(fates)) as started:
            order = data.draw(st.permutations(range(len(fates))))
            for index in order:
                if fates[index] != "live":
                    started[index].end(kill=fates[index] == "kill")
            killed = {started[i].path for i, fate in enumerate(fates) if fate == "kill"}
            alive = {started[i].path for i, fate in enumerate(fates) if fate == "live"}
            assert set(parent.iterdir()) == alive | killed
            own = ScratchDirectory("test", parent)
            assert set(parent.iterdir()) == alive | {own.path}
            assert all((path / "data").exists() for path in alive)
            own.remove()
