"""``firesteel savepoint``: what scripts and people see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from firesteel.checkpoint.metadata import SnapshotType, StateDescription, SubtaskState
from firesteel.checkpoint.metadata_file import write_metadata
from firesteel.checkpoint.storage import open_storage
from firesteel.cli.main import main
from tests.checkpoint.builders import metadata, operator


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def savepoint(tmp_path: Path) -> str:
    counting = operator(
        "count",
        SubtaskState(),
        uid="counter",
        states=(StateDescription("rules", "operator union"),),
    )
    directory = open_storage(str(tmp_path / "savepoint-1"))
    return write_metadata(metadata(counting, type=SnapshotType.SAVEPOINT), directory)


def test_show_prints_what_is_inside(savepoint: str) -> None:
    result = _run("savepoint", "show", savepoint)
    assert result.exit_code == 0
    assert "Savepoint 7 of job 'a job'" in result.output
    assert "'count': uid 'counter'" in result.output


def test_show_prints_json(savepoint: str) -> None:
    result = _run("savepoint", "show", "--json", savepoint)
    shown = json.loads(result.output)
    assert shown["type"] == "savepoint"
    assert shown["operators"][0]["uid"] == "counter"


def test_what_is_damaged_or_missing_is_one_line_and_code_1(savepoint: str) -> None:
    file = Path(savepoint) / "_metadata"
    file.write_bytes(file.read_bytes()[:-9])
    result = _run("savepoint", "show", savepoint)
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: {file} is damaged: it should have")
    file.unlink()
    result = _run("savepoint", "show", savepoint)
    assert result.exit_code == 1
    assert "no checkpoint or savepoint at" in result.output


def test_dispose_deletes(savepoint: str) -> None:
    result = _run("savepoint", "dispose", savepoint)
    assert (result.exit_code, result.output) == (0, f"Savepoint '{savepoint}' disposed.\n")
    assert not Path(savepoint).exists()


def test_settings_are_checked(savepoint: str) -> None:
    assert "expected KEY=VALUE" in _run("savepoint", "show", "-Dnonsense", savepoint).output
    result = _run("savepoint", "show", "-Ds3.endpoint=http://localhost:1", savepoint)
    assert result.exit_code == 0


def test_help_and_version() -> None:
    assert "savepoint" in _run("--help").output
    assert "show" in _run("savepoint", "-h").output
    assert "firesteel, version" in _run("--version").output
