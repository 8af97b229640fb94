"""The examples and the snippets of README and docs run, and print the output they show."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples import run_programs
from tests.examples.programs import EXAMPLES, PAGES, REPOSITORY, Program, examples, snippets

_PROGRAMS = [*examples(), *snippets()]
_TIME_LIMIT_SECONDS = 840

# The first test of this module waits for all programs.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The standard output of each program that succeeded."""
    directory = tmp_path_factory.mktemp("snippets")
    commands = []
    for number, program in enumerate(_PROGRAMS):
        path = program.path
        if path is None:
            path = directory / f"snippet_{number}.py"
            path.write_text(program.code)
        commands.append([str(path)])
    run = subprocess.run(
        [sys.executable, run_programs.__file__],
        input=json.dumps(commands),
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=_TIME_LIMIT_SECONDS,
        check=True,
    )
    return {
        _PROGRAMS[int(number)].name: text.splitlines()
        for number, text in re.findall(
            r"^=== (\d+)\n(.*?)^--- \1 ok$", run.stdout, re.MULTILINE | re.DOTALL
        )
    }


@pytest.mark.spark
@pytest.mark.parametrize("program", _PROGRAMS, ids=lambda program: program.name)
def test_the_program_runs(program: Program, outputs: dict[str, list[str]]) -> None:
    assert program.name in outputs, "it failed; its traceback is on standard error"
    written = outputs[program.name]
    if program.output is None:
        return
    if program.ordered:
        assert written == program.output
    else:
        assert sorted(written) == sorted(program.output)


def test_every_example_says_what_it_is_and_what_it_writes() -> None:
    silent = [p.name for p in examples() if p.output is None]
    assert EXAMPLES
    assert not silent


def test_the_first_program_of_the_readme_is_short() -> None:
    first = next(p for p in snippets() if p.name.startswith("README.md"))
    assert len(first.code.strip().splitlines()) <= 20
    assert first.output


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text())
    broken = [link for link in links if not (page.parent / link).exists()]
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    """`firesteel/task/slot.py` and its like, wherever a page names them."""
    named = re.findall(
        r"`((?:firesteel|tests|examples|benchmarks|docs)/[\w./-]+\.\w+)`", page.read_text()
    )
    assert not [name for name in named if not (REPOSITORY / name).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_are_named_exist(page: Path) -> None:
    """`tests/recovery/test_sinks.py::test_...`: a page that calls a test its proof."""
    named = re.findall(r"`(tests/[\w./-]+\.py)::(\w+)`", page.read_text())
    missing = [
        f"{file}::{test}"
        for file, test in named
        if f"def {test}(" not in (REPOSITORY / file).read_text()
    ]
    assert not missing
