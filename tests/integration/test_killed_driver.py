"""Killing the driver or an executor at any moment: the job continues with each record once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.integration.test_recovery import descendants, written
from tests.waiting import wait_until

PROGRAM = """
import sys

from firesteel.common import Configuration, Encoder
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy

directory, records, rate, resume, master = sys.argv[1:]
configuration = Configuration.from_dict({
    "execution.checkpointing.interval": "250 ms",
    "execution.checkpointing.dir": directory + "/checkpoints",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.buffer-timeout.interval": "5 ms",
    "restart-strategy.type": "exponential-delay",
    "restart-strategy.exponential-delay.initial-backoff": "200 ms",
    "firesteel.spark.master": master,
    "spark.executor.memory": "512m",
})
if resume == "resume":
    configuration.set_string("execution.state-recovery.path", directory + "/checkpoints")
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_parallelism(2)
source = DataGeneratorSource(lambda i: i, int(records), RateLimiterStrategy.per_second(int(rate)))
numbers = env.from_source(source, None, "numbers")
counted = numbers.map(lambda n: (n % 5, 1)).key_by(lambda r: r[0]).sum(1)
sink = (
    FileSink.for_row_format(directory + "/out", Encoder.simple_string_encoder())
    .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    .build()
)
counted.map(str).sink_to(sink)
env.execute("counting")
"""

REPOSITORY = Path(__file__).parents[2]


def start(
    tmp_path: Path, records: int, rate: int, *, resume: bool, master: str
) -> subprocess.Popen[bytes]:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    return subprocess.Popen(
        [
            sys.executable,
            str(script),
            str(tmp_path),
            str(records),
            str(rate),
            "resume" if resume else "start",
            master,
        ],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stderr=(tmp_path / "stderr").open("ab"),
    )


def wait_for_output(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    errors = (tmp_path / "stderr").read_text
    wait_until(lambda: written(tmp_path / "out") or process.poll() is not None, errors)
    assert process.poll() is None, errors()


def expected(records: int) -> Counter[tuple[int, int]]:
    return Counter((n % 5, n // 5 + 1) for n in range(records))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_driver_that_is_killed_at_some_moment_is_resumed_by_another_one(
    tmp_path: Path, seed: int
) -> None:
    driver = start(tmp_path, 2000, 150, resume=False, master="local[2]")
    try:
        wait_for_output(driver, tmp_path)
        time.sleep(random.Random(seed).uniform(0.0, 1.5))
    finally:
        driver.kill()
        driver.wait()
    assert 0 < written(tmp_path / "out").total() < 2000
    driver = start(tmp_path, 2000, 5000, resume=True, master="local[2]")
    try:
        assert driver.wait(timeout=200) == 0, (tmp_path / "stderr").read_text()
    finally:
        driver.kill()
    assert written(tmp_path / "out") == expected(2000)


@pytest.mark.slow
def test_an_executor_that_is_killed_is_replaced_and_the_job_goes_on(tmp_path: Path) -> None:
    driver = start(tmp_path, 4000, 300, resume=False, master="local-cluster[2,1,768]")
    try:
        wait_for_output(driver, tmp_path)
        draw = random.Random(3)
        for _ in range(2):
            executors = [
                pid
                for pid, command in descendants(driver.pid)
                if "CoarseGrainedExecutorBackend" in command and "java" in command.split()[0]
            ]
            assert executors
            os.kill(draw.choice(executors), signal.SIGKILL)
            time.sleep(draw.uniform(1.0, 3.0))
        assert driver.wait(timeout=240) == 0, (tmp_path / "stderr").read_text()
    finally:
        driver.kill()
        driver.wait()
    assert written(tmp_path / "out") == expected(4000)
