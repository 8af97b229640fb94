"""FileSource reads from S3 with the settings of the job, which neither messages nor state show."""

from __future__ import annotations

import gzip
import logging
import pickle
import uuid
from typing import Any

import pytest

from firesteel.checkpoint.storage.storage import open_storage
from firesteel.common import Configuration, WatermarkStrategy
from firesteel.connectors.files.paths import PathNotFoundError
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.errors import UserFunctionError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.testing import JobHarness

_ACCESS, _SECRET = "an-access-key", "a-very-secret-key"


@pytest.fixture
def settings(s3: FileSystemOptions) -> dict[str, str]:
    return {
        "s3.access-key": _ACCESS,
        "s3.secret-key": _SECRET,
        "s3.endpoint": str(s3.s3_endpoint),
        "s3.endpoint.region": "us-east-1",
    }


@pytest.fixture
def directory(s3: FileSystemOptions) -> str:
    """Three files of numbers, and hidden ones."""
    location = f"s3://checkpoints/{uuid.uuid4().hex}"
    storage = open_storage(location, s3)
    numbers = [f"{number}\n".encode() for number in range(60)]
    storage.write("a.txt", b"".join(numbers[:20]))
    storage.write("deep/b.txt", b"".join(numbers[20:40]))
    storage.write("deep/er/c.txt.gz", gzip.compress(b"".join(numbers[40:])))
    storage.write("_hidden.txt", b"100\n")
    storage.write("deep/.hidden/d.txt", b"100\n")
    return location


def _read(*paths: str) -> Any:
    def program(env: StreamExecutionEnvironment) -> Any:
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), *paths)
        lines = env.from_source(source.build(), WatermarkStrategy.no_watermarks(), "lines")
        return lines.uid("lines").map(int)

    return program


def _run(settings: dict[str, str], *paths: str) -> list[int]:
    harness = JobHarness(
        _read(*paths),
        parallelism=2,
        records_per_epoch=7,
        configuration=Configuration.from_dict({"restart-strategy.type": "none", **settings}),
    )
    harness.run()
    return sorted(harness.collected)


def test_a_directory(settings: dict[str, str], directory: str) -> None:
    assert _run(settings, directory) == list(range(60))
    assert _run(settings, f"{directory}/") == list(range(60))


def test_files_and_globs(settings: dict[str, str], directory: str) -> None:
    assert _run(settings, f"{directory}/a.txt") == list(range(20))
    assert _run(settings, f"{directory}/*.txt", f"{directory}/deep/*.txt") == list(range(40))
    assert _run(settings, f"{directory}/d*") == list(range(20, 60))
    assert _run(settings, f"{directory}/*/*/?.txt.gz") == list(range(40, 60))


def test_a_job_goes_on_from_its_positions(settings: dict[str, str], directory: str) -> None:
    configuration = Configuration.from_dict(settings)
    harness = JobHarness(
        _read(directory),
        records_per_epoch=7,
        configuration=configuration,
        checkpoint_every=0,
    )
    for _ in range(3):
        harness.run_epoch()
    location = harness.checkpoint()
    before = list(harness.collected)
    assert 0 < len(before) < 60
    resumed = harness.resume(location)
    resumed.run()
    assert sorted(before + resumed.collected) == list(range(60))


def test_a_missing_path_is_named(settings: dict[str, str], directory: str) -> None:
    for path in (f"{directory}/nothing", f"{directory}/*.csv"):
        with pytest.raises(PathNotFoundError, match="there is no file or directory at") as caught:
            _run(settings, path)
        assert caught.value.path == path


def test_keys_in_the_path_go_nowhere_else(
    settings: dict[str, str], directory: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = directory.replace("s3://", f"s3://{_ACCESS}:{_SECRET}@")
    del settings["s3.access-key"], settings["s3.secret-key"]
    with caplog.at_level(logging.DEBUG):
        assert _run(settings, path) == list(range(60))
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), path).build()
        configured = source.with_configuration(Configuration.from_dict(settings))
        splits = configured.create_enumerator(1).discover_splits()
        with pytest.raises(PathNotFoundError) as caught:
            _run(settings, f"{path}/nothing")
    assert _ACCESS not in f"{splits} {configured} {caught.value} {caplog.text}"
    assert _SECRET not in f"{splits} {configured} {caught.value} {caplog.text}"


def test_secrets_of_the_configuration_are_not_shown(
    settings: dict[str, str], directory: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), directory).build()
    configured = source.with_configuration(Configuration.from_dict(settings))
    assert _SECRET.encode() in pickle.dumps(configured), "readers need it"
    wrong = {**settings, "s3.endpoint": "http://127.0.0.1:1"}
    with (
        caplog.at_level(logging.DEBUG),
        pytest.raises(UserFunctionError, match=r"127\.0\.0\.1") as caught,
    ):
        _run(wrong, f"{directory}/a.txt")
    assert _SECRET not in f"{configured!r} {vars(configured)} {caught.value} {caplog.text}"
