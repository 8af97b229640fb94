"""Archives, cached files and files of object stores reach the tasks on Spark."""

from __future__ import annotations

import os
import uuid
import zipfile
from pathlib import Path
from typing import Any

import pytest

from firesteel.checkpoint.storage.storage import open_storage
from firesteel.common import WatermarkStrategy
from firesteel.datastream import MapFunction, RuntimeExecutionMode
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.filesystems.file_systems import FileSystemOptions
from tests.integration.conftest import MakeEnvironment


class ReadsFiles(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.factor = int(Path("numbers/factor.txt").read_text())
        cached = runtime_context.get_distributed_cache().get_file("offset")
        self.offset = int(Path(cached).read_text())

    def map(self, value: int) -> int:
        return value * self.factor + self.offset


@pytest.mark.parametrize("mode", ["hosts", "in-worker", "batch"])
def test_functions_find_archives_by_relative_path_and_cached_files_by_name(
    make_env: MakeEnvironment, tmp_path: Path, mode: str
) -> None:
    with zipfile.ZipFile(tmp_path / "numbers.zip", "w") as archive:
        archive.writestr("factor.txt", "10")
    (tmp_path / "offset.txt").write_text("3")
    settings = {"firesteel_slot__host": "in-worker"} if mode == "in-worker" else {}
    env = make_env(parallelism=1, **settings)
    if mode == "batch":
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.add_python_archive(str(tmp_path / "numbers.zip"), "numbers")
    env.register_cached_file(str(tmp_path / "offset.txt"), "offset")
    here = os.getcwd()
    with env.from_collection([1, 2]).map(ReadsFiles()).execute_and_collect() as results:
        assert sorted(results) == [13, 23]
    assert os.getcwd() == here

    # The next job has no archives, and finds the working directory as it was.
    plain = make_env(parallelism=1, **settings)
    if mode == "batch":
        plain.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with plain.from_collection([1]).map(lambda _: os.getcwd()).execute_and_collect() as results:
        assert list(results) == [here]


class Adds(MapFunction):
    def open(self, runtime_context: Any) -> None:
        cached = runtime_context.get_distributed_cache().get_file("offset")
        self.offset = int(Path(cached).read_text())

    def map(self, value: str) -> int:
        return int(value) + self.offset


def test_sources_and_cached_files_reach_s3_with_the_settings_of_the_job(
    make_env: MakeEnvironment, s3: FileSystemOptions
) -> None:
    location = f"s3://checkpoints/{uuid.uuid4().hex}"
    storage = open_storage(location, s3)
    for name in range(4):
        storage.write(f"in/{name}.txt", "\n".join(map(str, range(name, 40, 4))).encode())
    storage.write("offset.txt", b"1000")
    env = make_env(
        s3_access__key=str(s3.s3_access_key),
        s3_secret__key=str(s3.s3_secret_key),
        s3_endpoint=str(s3.s3_endpoint),
        s3_endpoint_region=str(s3.s3_region),
    )
    env.register_cached_file(f"{location}/offset.txt", "offset")
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), f"{location}/in")
    lines = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "lines")
    with lines.map(Adds()).execute_and_collect() as results:
        assert sorted(results) == list(range(1000, 1040))
