"""Files of bulk formats and files in an object store: each record once, whatever fails."""

from __future__ import annotations

import io
import json
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from firesteel.common import Configuration, Row, Types
from firesteel.connectors.files.paths import FilePaths
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    RollingPolicy,
)
from firesteel.datastream.formats.json import JsonEncoder
from firesteel.datastream.formats.parquet import ParquetBulkWriters
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.testing import Fault, JobHarness
from tests.recovery.jobs import RESTARTS, Trap

# A writer that is given up must not complain when it is collected.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")

RECORDS = 60
NUMBER = Types.ROW_NAMED(["n"], [Types.LONG()])


class Parity(BucketAssigner):
    def get_bucket_id(self, element: Any, context: Any) -> str:
        return f"parity={element.n % 2}"


def _parquet(directory: str) -> Any:
    return FileSink.for_bulk_format(directory, ParquetBulkWriters.for_row_type(NUMBER))


def _json(directory: str) -> Any:
    builder = FileSink.for_row_format(directory, JsonEncoder())
    return builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=20))


def _compacted(directory: str) -> Any:
    strategy = FileCompactStrategy.builder().set_size_threshold(60)
    strategy.enable_compaction_on_checkpoint(3)
    builder = FileSink.for_row_format(directory, JsonEncoder())
    builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=20))
    return builder.enable_compact(strategy.build(), FileCompactor.concat_file_compactor())


def _numbers(paths: FilePaths, directory: str) -> list[int]:
    """The numbers in all finished files."""
    found: list[int] = []
    for file in paths.list_files(directory, must_exist=False):
        with paths.open(file.path) as data:
            content = data.read()
        if content.startswith(b"PAR1"):
            found += [row["n"] for row in pq.read_table(io.BytesIO(content)).to_pylist()]
        else:
            found += [json.loads(line)["n"] for line in content.splitlines()]
        bucket = file.path.split("/")[-2]
        assert all(bucket == f"parity={n % 2}" for n in found[-1:])
    return sorted(found)


def _live(
    directory: str,
    build: Callable[[str], Any],
    settings: dict[str, str],
    seed: int,
    *,
    gently: bool = False,
) -> None:
    """Run a job with random faults, crashes and checkpoints to its end.

    gently: no task is lost. A function fails instead.
    """
    random = Random(seed)

    with tempfile.TemporaryDirectory() as checkpoints:
        trap = Trap(Path(checkpoints), times=3)

        def row_of(n: int) -> Row:
            if gently and n % 20 == 0:
                trap.meet()
            return Row(n=n)

        def program(env: Any) -> None:
            numbers = env.from_sequence(1, RECORDS).map(row_of, NUMBER)
            numbers.sink_to(build(directory).with_bucket_assigner(Parity()).build())

        configuration = Configuration(RESTARTS).add_all(
            Configuration.from_dict(
                {
                    "restart-strategy.fixed-delay.attempts": "1000",
                    "execution.checkpointing.dir": checkpoints,
                    **settings,
                }
            )
        )
        harness = JobHarness(
            program,
            parallelism=random.randint(1, 3),
            records_per_epoch=3,
            checkpoint_every=0,
            configuration=configuration,
            seed=seed,
        )
        for _ in range(300):
            action = random.random()
            if action < 0.08 and not gently:
                harness.crash()
            elif action < 0.4:
                harness.request_checkpoint()
            faults = {}
            if action > 0.8 and not gently:
                faults = {random.choice(harness.places()): random.choice([*Fault])}
            if not harness.run_epoch(faults):
                return
        harness.run()


@pytest.mark.parametrize("seed", range(8))
def test_parquet_on_a_local_disk(tmp_path: Path, seed: int) -> None:
    directory = str(tmp_path / "out")
    _live(directory, _parquet, {}, seed)
    paths = FilePaths.of((directory,))
    assert _numbers(paths, directory) == list(range(1, RECORDS + 1))


@pytest.mark.parametrize("seed", range(4))
def test_merged_files_on_a_local_disk(tmp_path: Path, seed: int) -> None:
    directory = str(tmp_path / "out")
    _live(directory, _compacted, {}, seed)
    paths = FilePaths.of((directory,))
    assert _numbers(paths, directory) == list(range(1, RECORDS + 1))
    assert all(file.path.rpartition("/")[2].startswith("compacted-") for file in _all(paths))


def _all(paths: FilePaths) -> list[Any]:
    return paths.list_files(paths.paths[0])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("build", [_parquet, _json, _compacted])
def test_files_in_an_object_store(s3: FileSystemOptions, build: Any, seed: int) -> None:
    directory = f"s3://checkpoints/{uuid.uuid4().hex}"
    _live(directory, build, _settings(s3), seed)
    paths = FilePaths.of((directory,)).with_options(s3)
    assert _numbers(paths, directory) == list(range(1, RECORDS + 1))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("build", [_parquet, _json])
def test_no_hidden_object_stays_if_no_task_is_lost(
    s3: FileSystemOptions, build: Any, seed: int
) -> None:
    """The driver does not know the uploads of a task that was lost before it could report them."""
    directory = f"s3://checkpoints/{uuid.uuid4().hex}"
    _live(directory, build, _settings(s3), seed, gently=True)
    paths = FilePaths.of((directory,)).with_options(s3)
    assert _numbers(paths, directory) == list(range(1, RECORDS + 1))
    file_system, root, _ = paths.locate(directory)
    names = [file.path.rpartition("/")[2] for file in file_system.list_files(root, hidden=True)]
    assert [name for name in names if name.startswith(".")] == []


def _settings(s3: FileSystemOptions) -> dict[str, str]:
    return {
        "s3.access-key": "an-access-key",
        "s3.secret-key": "a-very-secret-key",
        "s3.endpoint": str(s3.s3_endpoint),
        "s3.endpoint.region": "us-east-1",
    }
