"""PyFlink programs print the output of PyFlink when only their imports are changed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.compat import run_programs
from tests.compat.ledger import Status, entries

_REPOSITORY = Path(__file__).parents[2]
_PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
_TIME_LIMIT_SECONDS = 600

# The first test of this module waits for all programs.
pytestmark = pytest.mark.timeout(660)


@dataclass(frozen=True)
class ExpectedOutput:
    lines: list[str]
    ordered: bool


def _expected(program: Path) -> ExpectedOutput:
    docstring = ast.get_docstring(ast.parse(program.read_text())) or ""
    for title, ordered in (("Output:\n", True), ("Output, in any order:\n", False)):
        _, found, text = docstring.partition(title)
        if found:
            return ExpectedOutput([line.strip() for line in text.splitlines()], ordered)
    raise ValueError(f"{program} does not say what it writes")


def _name(program: Path) -> str:
    return program.stem


@pytest.mark.parametrize("program", _PROGRAMS, ids=_name)
def test_the_program_would_run_on_pyflink(program: Path) -> None:
    """It imports only names that PyFlink has, too, and that we claim to have."""
    working = {entry.path for entry in entries() if entry.status is Status.WORKS}
    imported = {
        f"{node.module.replace('firesteel', 'pyflink', 1)}.{alias.name}"
        for node in ast.walk(ast.parse(program.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    assert imported
    assert imported <= working


@pytest.fixture(scope="module")
def outputs() -> dict[str, list[str]]:
    """The standard output of each program."""
    command = [sys.executable, run_programs.__file__, *map(str, _PROGRAMS)]
    run = subprocess.run(
        command,
        cwd=_REPOSITORY,
        env=_environment(),
        stdout=subprocess.PIPE,
        text=True,
        timeout=_TIME_LIMIT_SECONDS,
        check=True,
    )
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in run.stdout.splitlines():
        if line.startswith("=== ") and not line.endswith(" failed"):
            lines = found.setdefault(line.removeprefix("=== "), [])
        else:
            lines.append(line)
    return found


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(_REPOSITORY)}


@pytest.mark.spark
@pytest.mark.parametrize("program", _PROGRAMS, ids=_name)
def test_the_program_writes_what_pyflink_writes(
    program: Path, outputs: dict[str, list[str]]
) -> None:
    expected = _expected(program)
    written = outputs[program.stem]
    if expected.ordered:
        assert written == expected.lines
    else:
        assert sorted(written) == sorted(expected.lines)
