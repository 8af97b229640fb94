"""FileSink over restarts, and over returns to any checkpoint or savepoint."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common import Configuration, Encoder, Types
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from firesteel.testing import Fault, JobHarness
from tests.recovery.jobs import RESTARTS
from tests.thoroughness import examples

RECORDS = 60
POLICIES = {
    "default": RollingPolicy.default_rolling_policy(),
    "small files": RollingPolicy.default_rolling_policy(part_size=8),
    "on checkpoint": RollingPolicy.on_checkpoint_rolling_policy(),
}
SETTINGS = Configuration(RESTARTS).add_all(
    Configuration.from_dict(
        {
            "execution.checkpointing.num-retained": "3",
            "restart-strategy.fixed-delay.attempts": "1000",
        }
    )
)


class Parity(BucketAssigner):
    def get_bucket_id(self, element: Any, context: Any) -> str:
        return f"parity={int(element) % 2}"


class Life:
    """A job that writes numbers, and everything that happens to it."""

    def __init__(self, root: Path, policy: str = "default", parallelism: int = 1) -> None:
        self.root = root
        self.policy = POLICIES[policy]
        self.random = Random(0)
        # Returns to an earlier point, and those of them that may repeat committed records.
        self.returns = self.repeats = 0
        configuration = Configuration(SETTINGS)
        configuration.set_string("execution.checkpointing.dir", str(root / "checkpoints"))
        self.harness = JobHarness(
            self.build,
            parallelism=parallelism,
            records_per_epoch=3,
            checkpoint_every=0,
            configuration=configuration,
        )

    def build(self, env: Any) -> None:
        builder = FileSink.for_row_format(str(self.root / "out"), Encoder.simple_string_encoder())
        sink = builder.with_rolling_policy(self.policy).with_bucket_assigner(Parity()).build()
        env.from_sequence(1, RECORDS).map(str, Types.STRING()).sink_to(sink)

    def epoch(self, _: int = 0) -> None:
        self.harness.run_epoch()

    def faults(self, seed: int) -> None:
        random = Random(seed)
        places = self.harness.places()
        chosen = random.sample(places, random.randint(1, len(places)))
        self.harness.run_epoch({place: random.choice([*Fault]) for place in chosen})

    def checkpoint(self, _: int = 0) -> None:
        self.harness.request_checkpoint()
        self.harness.run_epoch()

    def savepoint(self, _: int = 0) -> None:
        self.harness.request_savepoint(str(self.root / "savepoints"))
        self.harness.run_epoch()

    def crash(self, _: int = 0) -> None:
        self.returns += 1
        self.harness.crash()

    def resume(self, _: int = 0) -> None:
        """From the newest checkpoint."""
        if any((self.root / "checkpoints").rglob("_metadata")) and not self.repeats:
            self.returns += 1
            self.harness.kill()
            self.harness = self.harness.resume()

    def go_back(self, which: int) -> None:
        """To any checkpoint or savepoint that there is, of any earlier run."""
        points = sorted(self.root.rglob("_metadata"))
        if points:
            self.returns += 1
            self.repeats += 1
            self.harness.kill()
            self.harness = self.harness.resume(str(points[which % len(points)].parent))

    def act(self, action: str, argument: int) -> None:
        if not self.harness.status.is_terminal_state():
            getattr(self, action)(argument)

    def written(self) -> Counter[int]:
        files = (self.root / "out").rglob("part-*")
        return Counter(int(line) for file in files for line in file.read_text().split())

    def hidden(self) -> list[Path]:
        return [*(self.root / "out").rglob(".part-*")]


_ACTIONS = ("epoch", "epoch", "faults", "checkpoint", "savepoint", "crash", "resume", "go_back")


@given(
    st.lists(st.tuples(st.sampled_from(_ACTIONS), st.integers(0, 99)), max_size=14),
    st.sampled_from([*POLICIES]),
    st.integers(1, 2),
)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_job_can_go_back_to_any_point_at_any_time(
    actions: list[tuple[str, int]], policy: str, parallelism: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        life = Life(Path(directory), policy, parallelism)
        for action, argument in actions:
            life.act(action, argument)
        life.harness.run()
        written = life.written()
        most = 1 + life.returns if life.repeats else 1
        for number in range(1, RECORDS + 1):
            assert 1 <= written[number] <= most


@pytest.mark.parametrize("policy", POLICIES)
def test_each_retained_checkpoint_restores_in_any_order(tmp_path: Path, policy: str) -> None:
    life = Life(tmp_path, policy)
    for _ in range(4):
        life.epoch()
        life.checkpoint()
    points = sorted((tmp_path / "checkpoints").rglob("_metadata"))
    assert len(points) == 3
    for point in (*points, *reversed(points), *points):
        life.harness.kill()
        life.harness = life.harness.resume(str(point.parent))
        life.epoch()
        life.checkpoint()
        life.epoch()
    life.harness.run()
    assert set(life.written()) == {*range(1, RECORDS + 1)}


def test_a_savepoint_restores_hundreds_of_times(tmp_path: Path) -> None:
    """Each run continues for a while, and completes checkpoints of its own."""
    life = Life(tmp_path)
    life.epoch()
    savepoint = life.harness.stop(str(tmp_path / "savepoints"))
    assert not life.written()
    for _ in range(100):
        life.harness = life.harness.resume(savepoint)
        life.epoch()
        life.checkpoint()
        life.epoch()
        life.harness.kill()
    written = life.written()
    assert [written[number] for number in range(1, 7)] == [1] * 6
    life.harness = life.harness.resume(savepoint)
    life.harness.run()
    assert set(life.written()) == {*range(1, RECORDS + 1)}


def test_restarts_leave_no_hidden_files(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.epoch()
    life.checkpoint()
    for _ in range(25):
        life.epoch()
        life.crash()
        # Per bucket, the file that the checkpoint contains, and that of the last attempt.
        assert len(life.hidden()) <= 4
    for _ in range(10):
        life.checkpoint()
        life.crash()
        assert len(life.hidden()) <= 4
    life.harness.run()
    assert life.hidden() == []
    assert life.written() == Counter(range(1, RECORDS + 1))


def test_files_of_a_savepoint_outlive_the_restart_of_the_job_that_took_it(tmp_path: Path) -> None:
    """The job goes back to a checkpoint before the savepoint, which has more of the same file."""
    life = Life(tmp_path)
    life.epoch()
    life.checkpoint()
    life.epoch()
    savepoint = life.harness.savepoint(str(tmp_path / "savepoints"))
    life.crash()
    life.checkpoint()
    life.epoch()
    life.harness.kill()
    for file in (tmp_path / "out").rglob("part-*"):
        file.unlink()
    resumed = life.harness.resume(savepoint)
    resumed.run()
    # The records before the checkpoint were published, and consumed.
    assert set(life.written()) == {*range(7, RECORDS + 1)}
