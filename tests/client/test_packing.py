"""A job in its zip file: the part that a dispatcher reads, and the part that a job process loads."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from firesteel.client.packing import pack_job
from firesteel.common.configuration import Configuration
from firesteel.common.job_id import JobID
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.data_stream.collected import CollectBuffer
from firesteel.datastream.data_stream.stream_base import collect_sink
from firesteel.errors import ConfigurationError, InvalidProgramError
from firesteel.protocol.submission import (
    MANIFEST,
    Manifest,
    ProgramParts,
    located,
    read_manifest,
    unpack_submission,
)
from firesteel.usercode import pickling


def make_env(**settings: str) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment(Configuration.from_dict(settings)).set_parallelism(2)


def pack(env: StreamExecutionEnvironment, path: Path, *more: Any) -> Manifest:
    job = env._compile("packed", *more)
    with path.open("wb") as file:
        return pack_job(JobID.generate(), job.stream_graph, job.levels, job.settings, file)


def test_a_program_is_the_same_after_its_way(tmp_path: Path) -> None:
    env = make_env()
    numbers = env.from_collection([1, 2]).map(lambda number: number + 1)
    written = pack(env, tmp_path / "job.zip", collect_sink(numbers, CollectBuffer()))
    manifest = read_manifest(tmp_path / "job.zip")
    # JSON has no tuples.
    assert manifest.to_json() == written.to_json()
    assert len(manifest.collected) == 1
    unpack_submission(tmp_path / "job.zip", tmp_path / "job")
    parts: ProgramParts = pickling.loads((tmp_path / "job" / "program.pickle").read_bytes())
    graph = parts.program.unpack().levels.job_graph
    assert [vertex.parallelism for vertex in graph.vertices] == [1, 2]


def test_relative_directories_are_those_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job runs in a directory that is deleted with it."""
    monkeypatch.chdir(tmp_path)
    checkpoints, savepoints = "execution.checkpointing.dir", "execution.checkpointing.savepoint-dir"
    env = make_env(**{checkpoints: "checkpoints", savepoints: "s3://bucket/savepoints"})
    env.from_collection([1]).print()
    configuration = pack(env, tmp_path / "job.zip").configuration
    assert configuration[checkpoints] == f"{tmp_path}/checkpoints"
    assert configuration[savepoints] == "s3://bucket/savepoints"


def test_files_travel_and_are_found_again(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text("ANSWER = 42")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "inner.py").write_text("")
    (tmp_path / "requirements.txt").write_text("")
    env = make_env()
    env.add_python_file(str(tmp_path / "helpers.py"))
    env.add_python_file(str(tmp_path / "package"))
    env.set_python_requirements(str(tmp_path / "requirements.txt"))
    env.register_cached_file(str(tmp_path / "helpers.py"), "model")
    env.from_collection([1]).print()
    manifest = pack(env, tmp_path / "job.zip")
    unpack_submission(tmp_path / "job.zip", tmp_path / "job")
    files = located(manifest.files, tmp_path / "job")
    package, helpers = files.python_files
    assert (Path(package) / "inner.py").exists()
    assert Path(helpers).read_text() == "ANSWER = 42"
    assert files.requirements is not None
    assert Path(files.requirements.path).name == "requirements.txt"
    assert Path(files.cached_files[0].path).is_relative_to(tmp_path / "job")


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    env = make_env()
    env.add_python_file(str(tmp_path / "nothing.py"))
    env.from_collection([1]).print()
    with pytest.raises(ConfigurationError, match=r"nothing\.py"):
        pack(env, tmp_path / "job.zip")


def test_a_cached_stream_stays_with_its_program(tmp_path: Path) -> None:
    env = make_env(**{"execution.runtime-mode": "BATCH"})
    # The stream computes its cache as long as it exists.
    cached = env.from_collection([1]).map(lambda number: number).cache()
    cached.print()
    with pytest.raises(InvalidProgramError, match="without -m"):
        pack(env, tmp_path / "job.zip")


@pytest.mark.parametrize("content", [b"", b"no zip", b'{"job_id": 1}'])
def test_any_other_file_is_no_submission(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "job.zip").write_bytes(content)
    with pytest.raises(InvalidProgramError):
        read_manifest(tmp_path / "job.zip")


@pytest.mark.parametrize("manifest", ["{}", "[]", "7", '{"job_id": "x"}', "nonsense"])
def test_a_zip_file_without_a_manifest_is_no_submission(tmp_path: Path, manifest: str) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(MANIFEST, manifest)
    (tmp_path / "job.zip").write_bytes(stream.getvalue())
    with pytest.raises(InvalidProgramError, match="manifest"):
        read_manifest(tmp_path / "job.zip")


def test_names_cannot_leave_the_directory(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "job.zip", "w") as archive:
        archive.writestr(MANIFEST, json.dumps({}))
        archive.writestr("../../outside.txt", "x")
        archive.writestr("/absolute.txt", "x")
    directory = tmp_path / "deep" / "job"
    unpack_submission(tmp_path / "job.zip", directory)
    found = list(tmp_path.rglob("*.txt"))
    assert len(found) == 2
    assert all(path.is_relative_to(directory) for path in found)
