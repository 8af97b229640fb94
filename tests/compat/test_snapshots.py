"""Savepoints and checkpoints of earlier versions restore, with exactly the results of then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.compat.snapshots.archive import unpack
from tests.compat.snapshots.jobs import JOBS, KAFKA_TOPIC, VARIANTS, SnapshotJob, kafka_job
from tests.servers.kafka import KafkaBroker

_SNAPSHOTS = Path(__file__).parent / "snapshots"
_BY_NAME = {job.name: job for job in JOBS}


def _job_name(archive: Path) -> str:
    return archive.stem.split(".")[0]


_ARCHIVES = sorted(_SNAPSHOTS.glob("*/*.zip"))
_OF_JOBS = [archive for archive in _ARCHIVES if _job_name(archive) in _BY_NAME]


def _name(archive: Path) -> str:
    return f"{archive.parent.name}-{archive.stem}"


def _restore(
    job: SnapshotJob, archive: Path, tmp_path: Path, backend: str, **arguments: int
) -> None:
    snapshot = unpack(archive, tmp_path)
    facts = json.loads((tmp_path / "facts.json").read_text())
    directory = tmp_path / "directory"
    harness = job.harness(directory, backend, restore=snapshot, now=facts["now"], **arguments)
    harness.run()
    assert job.results(harness, directory) == facts["results"]


def test_each_job_has_its_snapshots() -> None:
    wanted = {f"{job.name}.{variant}" for job in JOBS for variant in job.variants}
    kafka = {f"kafka.{variant}" for variant in kafka_job("").variants}
    for version in _SNAPSHOTS.glob("[0-9]*"):
        assert {archive.stem for archive in version.glob("*.zip")} == wanted | kafka


@pytest.mark.parametrize("archive", _OF_JOBS, ids=_name)
def test_a_snapshot_restores(archive: Path, tmp_path: Path) -> None:
    backend, _ = VARIANTS[archive.stem.split(".")[1]]
    _restore(_BY_NAME[_job_name(archive)], archive, tmp_path, backend)


@pytest.mark.parametrize(
    "archive", [one for one in _OF_JOBS if one.stem.endswith(".savepoint")], ids=_name
)
def test_a_savepoint_restores_into_the_other_backend(archive: Path, tmp_path: Path) -> None:
    _restore(_BY_NAME[_job_name(archive)], archive, tmp_path, "rocksdb")


@pytest.mark.parametrize("archive", sorted(_SNAPSHOTS.glob("*/kafka.*.zip")), ids=_name)
def test_positions_in_kafka_restore(archive: Path, tmp_path: Path, kafka: KafkaBroker) -> None:
    if KAFKA_TOPIC not in kafka.admin.list_topics(timeout=10).topics:
        kafka.topic(2, KAFKA_TOPIC)
        # One by one: a producer that tries again may change the order of records under way.
        for number in range(60):
            kafka.write(KAFKA_TOPIC, [str(number)], number % 2)
    _restore(kafka_job(kafka.servers), archive, tmp_path, "hashmap")
