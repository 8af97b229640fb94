"""Writes the snapshots of the jobs, with the Firesteel that is first on the path. See README.md."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.compat.snapshots.archive import pack
from tests.compat.snapshots.jobs import (
    EPOCHS_BEFORE,
    JOBS,
    KAFKA_TOPIC,
    VARIANTS,
    SnapshotJob,
    kafka_job,
)


def generate(job: SnapshotJob, target: Path) -> None:
    """Interrupt the job with each kind of snapshot, and note what comes out afterwards."""
    with tempfile.TemporaryDirectory() as root:
        whole = Path(root, "whole")
        job.prepare(whole)
        uninterrupted = job.harness(whole, "hashmap")
        uninterrupted.run()
        expected = job.results(uninterrupted, whole)
        for variant in job.variants:
            backend, kind = VARIANTS[variant]
            directory = Path(root, variant)
            job.prepare(directory)
            harness = job.harness(directory, backend, inline_threshold=256)
            for _ in range(EPOCHS_BEFORE):
                harness.run_epoch()
            location = Path(harness.savepoint() if kind == "savepoint" else harness.checkpoint())
            # Collected records leave with a checkpoint, not with a savepoint.
            before = job.results(harness, directory) if kind == "checkpoint" else {}
            facts: dict[str, Any] = {"now": harness.now_millis() / 1000}
            saved = Path(root, f"{variant} saved")
            # What the sinks have at this moment is part of what is restored.
            if directory.exists():
                shutil.copytree(directory, saved / "directory")
            _copy_snapshot(location, saved / "snapshot")
            harness.kill()
            resumed = job.harness(directory, backend, restore=location, now=facts["now"])
            resumed.run()
            after = job.results(resumed, directory)
            _check(f"{job.name}, {variant}", expected, before, after)
            facts["results"] = after
            (saved / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")
            target.mkdir(parents=True, exist_ok=True)
            pack(saved, str(directory), target / f"{job.name}.{variant}.zip")


def _copy_snapshot(location: Path, target: Path) -> None:
    shutil.copytree(location, target / location.name)
    shared = location.parent / "shared"
    if shared.exists():
        shutil.copytree(shared, target / "shared")


def _check(what: str, expected: Any, before: Any, after: Any) -> None:
    """The two halves give what the uninterrupted job gives."""
    for stream, records in expected.items():
        if stream == "sinks":
            assert after[stream] == records, f"{what}: the sinks differ"
            continue
        whole = Counter(records)
        rest = Counter(after[stream])
        if stream in before:
            rest += Counter(before[stream])
            assert rest == whole, f"{what}, {stream}: {rest - whole} too many, {whole - rest} lost"
        assert rest <= whole, f"{what}, {stream}: {rest - whole} is too much"
        print(f"{what}, {stream}: {len(after[stream])} of {len(records)} records after it")


def main(version: str) -> None:
    target = Path(__file__).parent / version
    for job in JOBS:
        generate(job, target)
    from tests.servers.kafka import KafkaBroker

    with tempfile.TemporaryDirectory() as directory:
        broker = KafkaBroker(Path(directory))
        try:
            broker.wait_until_it_answers()
            broker.topic(2, KAFKA_TOPIC)
            for partition in range(2):
                broker.write(KAFKA_TOPIC, map(str, range(partition, 60, 2)), partition)
            generate(kafka_job(broker.servers), target)
        finally:
            broker.close()


if __name__ == "__main__":
    main(sys.argv[1])
