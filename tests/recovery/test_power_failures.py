"""Power failures: checkpoints and finished files that were reported are on the disk."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.checkpoint.storage.discovery import find_checkpoint
from firesteel.common import Configuration, Encoder, Types
from firesteel.datastream.connectors.file_system import FileSink, RollingPolicy
from firesteel.testing import JobHarness
from tests.power_failure import Disk, disk_below
from tests.recovery.jobs import RESTARTS
from tests.thoroughness import examples

RECORDS = 40
POLICIES = {
    "default": RollingPolicy.default_rolling_policy(),
    "small files": RollingPolicy.default_rolling_policy(part_size=8),
    "on checkpoint": RollingPolicy.on_checkpoint_rolling_policy(),
}


class Machine:
    """A job with keyed state and a FileSink, and the disk below all of its files."""

    def __init__(self, root: Path, disk: Disk, policy: str) -> None:
        self.root = root
        self.disk = disk
        self.policy = POLICIES[policy]
        self.completed: str | None = None
        self.harness = self._start()

    def _start(self) -> JobHarness:
        configuration = Configuration(RESTARTS)
        configuration.set_string("execution.checkpointing.dir", str(self.root / "checkpoints"))
        return JobHarness(
            self.build,
            records_per_epoch=3,
            checkpoint_every=0,
            inline_threshold=0,
            configuration=configuration,
        )

    def build(self, env: Any) -> None:
        sink = (
            FileSink.for_row_format(str(self.root / "out"), Encoder.simple_string_encoder())
            .with_rolling_policy(self.policy)
            .build()
        )
        numbers = env.from_sequence(1, RECORDS).key_by(lambda number: number % 3)
        numbers.reduce(lambda total, number: total + number).map(str, Types.STRING()).sink_to(sink)

    def epoch(self) -> None:
        self.harness.run_epoch()

    def checkpoint(self) -> None:
        if not self.harness.status.is_terminal_state():
            self.completed = self.harness.checkpoint()

    def crash(self) -> None:
        if not self.harness.status.is_terminal_state():
            self.harness.crash()

    def power_failure(self) -> None:
        if self.harness.status.is_terminal_state():
            return
        self.harness.kill()
        self.disk.fail()
        if self.completed is None:
            self.harness = self._start()
        else:
            assert find_checkpoint(self.completed).checkpoint.location == self.completed
            self.harness = self.harness.resume()

    def lines(self) -> list[int]:
        return sorted(
            int(line)
            for file in (self.root / "out").rglob("part-*")
            for line in file.read_text().split()
        )


def expected() -> list[int]:
    totals = dict.fromkeys(range(3), 0)
    lines = []
    for number in range(1, RECORDS + 1):
        totals[number % 3] += number
        lines.append(totals[number % 3])
    return sorted(lines)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_checkpoint_is_on_the_disk_before_the_one_before_it_is_deleted(
    tmp_path: Path, policy: str
) -> None:
    with disk_below(tmp_path) as disk:
        machine = Machine(tmp_path, disk, policy)
        for _ in range(3):
            machine.epoch()
            machine.checkpoint()
        assert len(list((tmp_path / "checkpoints").rglob("_metadata"))) == 1
        machine.power_failure()
        machine.harness.run()
        assert machine.lines() == expected()


@given(
    st.lists(
        st.sampled_from(["epoch", "epoch", "checkpoint", "crash", "power_failure"]), max_size=12
    ),
    st.sampled_from([*POLICIES]),
)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_power_failures_at_any_time_lose_and_double_nothing(
    actions: list[str], policy: str
) -> None:
    with tempfile.TemporaryDirectory() as directory, disk_below(Path(directory)) as disk:
        machine = Machine(Path(directory), disk, policy)
        for action in actions:
            getattr(machine, action)()
        machine.power_failure()
        machine.harness.run()
        assert machine.lines() == expected()
