"""Archives and cached files on their way to the tasks, without Spark."""

from __future__ import annotations

import uuid
import zipfile
from pathlib import Path
from typing import Any

import pytest

from firesteel.checkpoint.storage.storage import open_storage
from firesteel.common import Configuration
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.errors import ConfigurationError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.graph.settings import CachedFile, JobSettings, PythonArchive
from firesteel.protocol.program import JobProgram, PackedProgram
from firesteel.spark.shipping import stage_resources
from firesteel.spark.slot_task import SlotTask
from firesteel.usercode import pickling
from firesteel.usercode.resources import JobResources


class Context:
    """Takes files like a SparkContext."""

    def __init__(self) -> None:
        self.files: list[Path] = []

    def addFile(self, path: str) -> None:  # noqa: N802 - Spark's name
        self.files.append(Path(path))


def stage(
    context: Any,
    directory: Path,
    *,
    local: bool,
    configuration: Configuration | None = None,
    **files: Any,
) -> JobResources:
    directory.mkdir(exist_ok=True)
    configuration = configuration or Configuration()
    settings = JobSettings("job", configuration, RuntimeExecutionMode.STREAMING, True, **files)
    return stage_resources(context, settings, directory, local=local)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as file:
        file.writestr("words.txt", "to be")
    return tmp_path / "data.zip"


def test_on_one_machine_tasks_take_the_files_where_they_are(archive, tmp_path):
    context = Context()
    resources = stage(
        context,
        tmp_path / "job",
        local=True,
        python_archives=(PythonArchive(str(archive), "data"),),
        cached_files=(CachedFile(f"file://{archive}", "again"),),
    )
    assert context.files == []
    assert {file.path for file in (*resources.archives, *resources.cached_files)} == {str(archive)}


def test_on_a_cluster_files_of_one_name_do_not_get_in_each_others_way(archive, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "data.zip").write_text("another one")
    context = Context()
    resources = stage(
        context,
        tmp_path / "job-1",
        local=False,
        python_archives=(PythonArchive(str(archive), "data"),),
        cached_files=(CachedFile(str(other / "data.zip"), "other"),),
    )
    stage(
        context,
        tmp_path / "job-2",
        local=False,
        python_archives=(PythonArchive(str(archive), "data"),),
    )
    assert len({path.name for path in context.files}) == 3
    # Spark has them in one directory.
    shipped = {path.name: path for path in context.files}
    placed = resources.place(tmp_path / "place", lambda path: shipped[Path(path).name])
    assert placed.working_directory is not None
    assert (Path(placed.working_directory) / "data" / "words.txt").read_text() == "to be"
    assert Path(placed.cached_files["other"]).name == "data.zip"
    assert Path(placed.cached_files["other"]).read_text() == "another one"


def test_a_directory_can_be_cached(tmp_path):
    directory = tmp_path / "dictionary"
    (directory / "en").mkdir(parents=True)
    (directory / "en" / "a.txt").write_text("apple")
    files = (CachedFile(str(directory), "dictionary"),)
    resources = stage(Context(), tmp_path / "job", local=True, cached_files=files)
    placed = resources.place(tmp_path / "place", Path)
    assert (Path(placed.cached_files["dictionary"]) / "en" / "a.txt").read_text() == "apple"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"python_archives": (PythonArchive("/nowhere.zip", "x"),)}, "there is nothing"),
        ({"python_archives": (PythonArchive(__file__, "x"),)}, "not a zip file"),
        ({"cached_files": (CachedFile("/nowhere", "x"),)}, "there is nothing"),
    ],
)
def test_what_cannot_travel_is_an_error_before_the_job_starts(tmp_path, files, message):
    with pytest.raises(ConfigurationError, match=message):
        stage(Context(), tmp_path / "job", local=True, **files)


def test_on_another_machine_a_task_finds_them_among_sparks_files(archive, tmp_path, monkeypatch):
    """The driver's directory is not there: program and archives come from Spark."""
    context = Context()
    resources = stage(
        context,
        tmp_path / "job",
        local=False,
        python_archives=(PythonArchive(str(archive), "data"),),
    )
    env = StreamExecutionEnvironment()
    env.from_collection([1]).print()
    program = JobProgram("1234", "job", 0, env._compile().levels, resources=resources)
    sparks = tmp_path / "sparks"
    sparks.mkdir()
    (sparks / "program.pickle").write_bytes(pickling.dumps(PackedProgram.pack(program)))
    for path in context.files:
        path.rename(sparks / path.name)
    monkeypatch.setattr("pyspark.SparkFiles.get", lambda name: str(sparks / name))
    packed = SlotTask("/the/driver/only/program.pickle", None).load_program()
    assert packed.placed.working_directory == str(sparks / "resources-1234" / "work")
    assert (Path(packed.placed.working_directory) / "data" / "words.txt").exists()


def test_remote_files_come_with_the_settings_of_the_job(
    archive: Path, tmp_path: Path, s3: FileSystemOptions
) -> None:
    location = f"s3://checkpoints/{uuid.uuid4().hex}"
    storage = open_storage(location, s3)
    storage.write("offset.txt", b"100")
    storage.write("data.zip", archive.read_bytes())
    configuration = Configuration.from_dict(
        {
            "s3.access-key": "an-access-key",
            "s3.secret-key": "a-very-secret-key",
            "s3.endpoint": str(s3.s3_endpoint),
        }
    )
    resources = stage(
        Context(),
        tmp_path / "job",
        local=True,
        configuration=configuration,
        python_archives=(PythonArchive(f"{location}/data.zip", "data"),),
        cached_files=(CachedFile(f"{location}/offset.txt", "offset"),),
    )
    placed = resources.place(tmp_path / "place", Path)
    assert Path(placed.cached_files["offset"]).name == "offset.txt"
    assert Path(placed.cached_files["offset"]).read_text() == "100"
    assert placed.working_directory is not None
    assert (Path(placed.working_directory) / "data" / "words.txt").read_text() == "to be"
    with pytest.raises(ConfigurationError, match=r"nothing\.txt cannot be read") as missing:
        stage(
            Context(),
            tmp_path / "other job",
            local=True,
            configuration=configuration,
            cached_files=(CachedFile(f"{location}/nothing.txt", "nothing"),),
        )
    assert "a-very-secret-key" not in str(missing.value)
