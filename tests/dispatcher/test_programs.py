"""Uploaded programs: files of Python, and their runs."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import pytest

from firesteel.dispatcher.programs import Programs, TooManyRunsError
from firesteel.errors import InvalidProgramError


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path / "programs")


def test_programs_are_kept_listed_and_deleted(programs: Programs) -> None:
    assert programs.all() == []
    first = programs.add("job.py", b"print(1)")
    second = programs.add("job.py", b"print(2)")
    assert first.id != second.id
    assert {one.id for one in programs.all()} == {first.id, second.id}
    assert first.name == "job.py"
    assert programs.find(first.id) == first
    programs.delete(first)
    assert programs.find(first.id) is None
    assert programs.find("../job.py") is None


@pytest.mark.parametrize(
    "name",
    ["", "job.jar", "../job.py", "a/b.py", ".py", "job.py\0", "j" * 200 + ".py", "j\u00f6b.py"],
)
def test_names_that_are_refused(programs: Programs, name: str) -> None:
    with pytest.raises(InvalidProgramError, match=r"a file such as job\.py"):
        programs.add(name, b"")


@pytest.mark.parametrize("content", [b"def", b"\x00\x01", b"\xff\xfe"])
def test_a_file_that_is_no_program(programs: Programs, content: bytes) -> None:
    with pytest.raises(InvalidProgramError, match="is no Python program"):
        programs.add("job.py", content)


def test_a_run_gives_the_program_its_options_and_arguments(programs: Programs) -> None:
    program = programs.add("job.py", b"pass")
    submitted = f"Job has been submitted with JobID {'a' * 32}\n"
    with mock.patch("subprocess.run") as run:
        run.return_value = mock.Mock(stdout=submitted, returncode=0)
        assert programs.run(program, "http://localhost:1", ["-p", "2"], ["--x"]) == "a" * 32
    command = run.call_args.args[0]
    assert command[:3] == [sys.executable, "-m", "firesteel"]
    assert command[3:8] == ["run", "-m", "http://localhost:1", "-d", "-p"]
    assert command[8:] == ["2", "-py", str(program.path), "--", "--x"]


def test_a_program_that_fails_shows_its_last_words(programs: Programs) -> None:
    program = programs.add("job.py", b"x = {}\nx['missing']")
    with pytest.raises(InvalidProgramError, match=r"exit code 1:[\s\S]*KeyError: 'missing'"):
        programs.run(program, "http://localhost:1", [], [])


def test_few_programs_run_at_the_same_time(programs: Programs) -> None:
    program = programs.add("job.py", b"pass")
    with mock.patch.object(programs, "_runs") as runs:
        runs.acquire.return_value = False
        with pytest.raises(TooManyRunsError):
            programs.run(program, "http://localhost:1", [], [])
