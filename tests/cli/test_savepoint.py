"""``firesteel savepoint``: its output for scripts and for people."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from firesteel.checkpoint.metadata import SnapshotType, SubtaskState
from firesteel.checkpoint.state_descriptions import StateDescription
from firesteel.checkpoint.storage.metadata_file import write_metadata
from firesteel.checkpoint.storage.storage import open_storage
from firesteel.cli.main import main
from tests.checkpoint.builders import file_segment, metadata, operator


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


def test_show_names_all_files_that_are_missing_or_have_another_size(tmp_path: Path) -> None:
    job = open_storage(str(tmp_path))
    segments = tuple(file_segment(job, f"segment-{number}") for number in range(3))
    counting = operator("count", SubtaskState(segments=segments))
    checkpoint = write_metadata(metadata(counting), job.at("chk-7"))
    assert _run("savepoint", "show", checkpoint).exit_code == 0
    shared = tmp_path / "shared"
    (shared / "segment-0").unlink()
    (shared / "segment-2").write_bytes(b"sta")
    result = _run("savepoint", "show", "--json", checkpoint)
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"Error: {shared}/segment-0 is damaged: it does not exist",
        f"Error: {shared}/segment-2 is damaged: it should have 5 bytes, but it has 3",
    ]
    assert len(json.loads(result.stdout)["defects"]) == 2


def test_hdfs_without_its_libraries_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class WithoutLibraries:
        @staticmethod
        def from_uri(uri: str) -> None:
            raise OSError("Unable to load libjvm\n" + "dlopen(/a/libjvm.so) failed\n" * 20)

    monkeypatch.setattr("pyarrow.fs.FileSystem", WithoutLibraries)
    result = _run("savepoint", "show", "hdfs://name-node:8020/savepoints/1")
    assert result.exit_code == 1
    assert "hdfs:// needs Java's libjvm and Hadoop's libhdfs" in result.output
    assert len(result.output.splitlines()) == 1


@pytest.mark.parametrize("module", ["firesteel", "firesteel.cli.main"])
def test_the_command_is_a_module_too(module: str) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True
    )
    assert answer.stdout.startswith("firesteel, version")


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
