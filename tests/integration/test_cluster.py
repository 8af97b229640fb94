"""A cluster: Spark's standalone master and two workers in separate processes.

The executors' Python has pyspark and pyarrow, but neither Firesteel nor the user's module.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"

HELPER = """
def triple(value):
    return value * 3
"""

PROGRAM = """
import os
import sys

from firesteel.common import Configuration
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream import MapFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource

from helper_of_user import triple

configuration = Configuration()
configuration.set_string("firesteel.spark.master", sys.argv[1])
configuration.set_string("spark.executorEnv.PYTHONPATH", sys.argv[2])
configuration.set_string("spark.executor.memory", "512m")
# No task starts before both executors are there.
configuration.set_string("spark.cores.max", "2")
configuration.set_string("spark.scheduler.minRegisteredResourcesRatio", "1.0")
configuration.set_string("firesteel.epoch.max-records", "2000")
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_parallelism(2)
here = os.path.dirname(__file__)
env.add_python_file(os.path.join(here, "helper_of_user.py"))
env.add_python_archive(os.path.join(here, "data.zip"), "data")
env.register_cached_file(os.path.join(here, "zero.txt"), "zero")


class AddZero(MapFunction):
    def open(self, runtime_context):
        with open("data/zero.txt") as file:
            self.zero = int(file.read())
        with open(runtime_context.get_distributed_cache().get_file("zero")) as file:
            self.zero += int(file.read())

    def map(self, value):
        return value + self.zero


def sums():
    source = NumberSequenceSource(1, 10000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    return (
        numbers.map(triple)
        .map(AddZero())
        # The processes of an executor, slot hosts among them, are one group.
        .map(lambda x: (x % 2, x, frozenset({os.getpgrp()})))
        .key_by(lambda t: t[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1], a[2] | b[2]))
    )


def show(results):
    last = {}
    executors = set()
    for key, total, groups in results:
        last[key] = max(total, last.get(key, 0))
        executors |= groups
    print(sorted(last.items()), len(executors))


with sums().execute_and_collect() as results:
    show(results)

env.set_runtime_mode(RuntimeExecutionMode.BATCH)
with sums().execute_and_collect() as results:
    show(results)
"""


def start(*arguments: str, log: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(SPARK_CLASS), *arguments], stdout=log.open("wb"), stderr=subprocess.STDOUT
    )


def wait_for_text(log: Path, pattern: str, seconds: float = 90) -> str:
    deadline = time.monotonic() + seconds
    while True:
        match = re.search(pattern, log.read_text())
        if match:
            return match.group(0)
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


@pytest.fixture
def master_url(tmp_path: Path) -> Iterator[str]:
    prefix = "org.apache.spark.deploy"
    master_log = tmp_path / "master.log"
    processes = [
        start(
            f"{prefix}.master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--webui-port",
            "0",
            log=master_log,
        )
    ]
    try:
        url = wait_for_text(master_log, r"spark://127\.0\.0\.1:\d+")
        for number in range(2):
            log = tmp_path / f"worker{number}.log"
            processes.append(
                start(
                    f"{prefix}.worker.Worker",
                    "--host",
                    "127.0.0.1",
                    "--webui-port",
                    "0",
                    "--cores",
                    "1",
                    "--memory",
                    "768m",
                    "--work-dir",
                    str(tmp_path / f"w{number}"),
                    url,
                    log=log,
                )
            )
            wait_for_text(log, "Successfully registered")
        yield url
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_user_code_and_firesteel_itself_reach_the_executors(
    master_url: str, tmp_path: Path
) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in ("pyspark", "py4j", "pyarrow"):
        location = Path(str(__import__(name).__file__)).parent
        (packages / name).symlink_to(location)
        for extra in location.parent.glob(f"{name}.libs"):
            (packages / extra.name).symlink_to(extra)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    (tmp_path / "helper_of_user.py").write_text(HELPER)
    (tmp_path / "zero.txt").write_text("0")
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.write(tmp_path / "zero.txt", "zero.txt")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    # An interpreter without this environment's packages.
    environment["PYSPARK_PYTHON"] = os.path.realpath(sys.executable)
    environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    result = subprocess.run(
        [sys.executable, str(program), master_url, str(packages)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    numbers = [3 * x for x in range(1, 10001)]
    sums = [(key, sum(x for x in numbers if x % 2 == key)) for key in (0, 1)]
    # Streaming and batch, and both executors have taken part.
    expected = f"{sums} 2"
    assert result.stdout.splitlines() == [expected, expected]
