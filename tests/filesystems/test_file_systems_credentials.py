"""Keys of object stores reach the tasks, but never checkpoints or messages."""

from __future__ import annotations

import logging
import uuid
from typing import Any

import pytest

from firesteel.checkpoint.savepoints.description import show_snapshot
from firesteel.checkpoint.storage.storage import StorageError, open_storage
from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.testing import JobHarness

_ACCESS, _SECRET = "an-access-key", "a-very-secret-key"


def _program(env: StreamExecutionEnvironment) -> Any:
    numbers = env.from_collection(list(range(50))).uid("numbers")
    return numbers.key_by(lambda n: n % 5).reduce(lambda a, b: a + b).uid("sums")


def test_no_credential_is_in_a_checkpoint_a_savepoint_or_the_log(
    s3: FileSystemOptions, caplog: pytest.LogCaptureFixture
) -> None:
    root = f"s3://checkpoints/{uuid.uuid4().hex}"
    configuration = Configuration()
    for key, value in {
        "s3.access-key": _ACCESS,
        "s3.secret-key": _SECRET,
        "s3.endpoint": str(s3.s3_endpoint),
        "execution.checkpointing.dir": f"{root}/checkpoints",
    }.items():
        configuration.set_string(key, value)
    with caplog.at_level(logging.DEBUG):
        job = JobHarness(
            _program,
            parallelism=2,
            records_per_epoch=5,
            inline_threshold=0,
            configuration=configuration,
            checkpoint_every=0,
        )
        locations = [job.checkpoint(), job.savepoint(f"{root}/savepoints")]
        job.resume(locations[1]).run()
    options = FileSystemOptions(_ACCESS, _SECRET, s3_endpoint=s3.s3_endpoint)
    everything = open_storage(root, options)
    files = everything.list_files()
    assert len(files) > 4
    for file in files:
        content = everything.read(file.path)
        assert _SECRET.encode() not in content
        assert _ACCESS.encode() not in content
    shown = "".join(str(show_snapshot(location, options).to_json()) for location in locations)
    assert _SECRET not in shown + caplog.text


def test_credentials_in_a_location_are_not_shown(s3: FileSystemOptions) -> None:
    location = f"s3://{_ACCESS}:{_SECRET}@checkpoints/there"
    storage = open_storage(location, FileSystemOptions(s3_endpoint=s3.s3_endpoint))
    assert storage.location == "s3://checkpoints/there"
    with pytest.raises(StorageError) as missing:
        storage.read("nothing")
    assert _SECRET not in str(missing.value) + repr(storage)
