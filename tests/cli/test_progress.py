"""Progress is for people at a terminal, and not for pipes."""

from __future__ import annotations

import io
import sys

import pytest

from firesteel.cli import progress as module
from firesteel.cli.progress import progress
from tests.waiting import wait_until


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_the_seconds_and_a_clean_line_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "_STEP_SECONDS", 0.01)
    with progress("taking the savepoint"):
        wait_until(lambda: "taking the savepoint 0 s" in terminal.getvalue())
    assert terminal.getvalue().endswith("\r\033[K")


def test_a_pipe_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(module, "_STEP_SECONDS", 0.01)
    with progress("taking the savepoint"):
        pass
    assert pipe.getvalue() == ""
