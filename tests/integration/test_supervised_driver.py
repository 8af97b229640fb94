"""``firesteel run --ha`` as a driver that Spark's standalone master supervises."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from tests.integration.test_cluster import start, wait_for_text
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SPARK = Path(pyspark.__file__).parent
RECORDS = 4000
JOB = f"""
import sys
from firesteel.common import Encoder, Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.file_system import FileSink

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(500)
source = DataGeneratorSource(lambda number: number, {RECORDS}, RateLimiterStrategy.per_second(200))
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
sink = FileSink.for_row_format(sys.argv[1], Encoder.simple_string_encoder()).build()
numbers.map(str, Types.STRING()).uid("text").sink_to(sink).uid("files")
env.execute("supervised")
"""


@dataclass
class Supervisor:
    """A standalone master with one worker, which runs drivers too."""

    url: str
    directory: Path

    @property
    def log(self) -> str:
        return (self.directory / "worker.log").read_text()

    def submit(self, *arguments: str) -> str:
        """Run the command of the manual, and return the id of the driver."""
        [jar] = (SPARK / "jars").glob("spark-core_*.jar")
        firesteel = Path(sys.executable).with_name("firesteel")
        command = [
            str(SPARK / "bin" / "spark-submit"),
            "--master", self.url, "--deploy-mode", "cluster", "--supervise",
            "--conf", f"spark.pyspark.python={sys.executable}",
            "--class", "org.apache.spark.deploy.PythonRunner",
            str(jar), str(firesteel), "", *arguments,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        found = re.search(r"driver-\d{14}-\d{4}", done.stdout + done.stderr)
        assert found, done.stdout + done.stderr
        return found.group(0)

    def processes(self) -> dict[str, list[int]]:
        """Return the processes of the driver: the JVM, and Firesteel in it."""
        found: dict[str, list[int]] = {"jvm": [], "python": []}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                command = (entry / "cmdline").read_bytes().decode().split("\0")
                if str(self.directory / "job.py") not in command:
                    continue
                if any("DriverWrapper" in one for one in command):
                    found["jvm"].append(int(entry.name))
                elif "run" in command and "--ha" in command:
                    found["python"].append(int(entry.name))
        return found


@contextmanager
def supervisor(directory: Path) -> Iterator[Supervisor]:
    prefix = "org.apache.spark.deploy"
    own = ["--host", "127.0.0.1", "--webui-port", "0"]
    log = directory / "master.log"
    processes = [start(f"{prefix}.master.Master", *own, "--port", "0", log=log)]
    made = None
    try:
        url = wait_for_text(log, r"spark://127\.0\.0\.1:\d+")
        log = directory / "worker.log"
        resources = ["--cores", "8", "--memory", "4g", "--work-dir", str(directory / "work")]
        processes.append(start(f"{prefix}.worker.Worker", *own, *resources, url, log=log))
        wait_for_text(log, "Successfully registered")
        made = Supervisor(url, directory)
        yield made
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()
        if made is not None:
            for pids in made.processes().values():
                for pid in pids:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("victim", ["python", "jvm"])
def test_a_driver_that_is_killed_continues_from_its_newest_checkpoint(victim, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    output, pointers = tmp_path / "output", tmp_path / "ha" / "orders"
    settings = {
        "high-availability.type": "filesystem",
        "high-availability.storageDir": str(tmp_path / "ha"),
        "high-availability.cluster-id": "orders",
        "firesteel.high-availability.lease-duration": "3 s",
        "firesteel.high-availability.lease-renewal": "500 ms",
        "spark.executor.memory": "512m",
        "rest.port": "0",
    }
    with supervisor(tmp_path) as spark:
        settings["firesteel.spark.master"] = spark.url
        options = [f"-D{key}={value}" for key, value in settings.items()]
        driver = spark.submit("run", "--ha", *options, str(tmp_path / "job.py"), str(output))

        def driver_log() -> str:
            files = sorted((tmp_path / "work" / driver).glob("std*"))
            return "\n".join([spark.log, *(file.read_text() for file in files)])

        wait_until(lambda: any(pointers.glob("term-0000000001/checkpoints/*")), driver_log)
        first = spark.processes()
        os.kill(first[victim][0], signal.SIGKILL)
        wait_until(
            lambda: any(pid not in first["jvm"] for pid in spark.processes()["jvm"]), driver_log
        )
        wait_until(lambda: any(pointers.glob("term-0000000002*/ended/*")), driver_log)
        wait_until(lambda: not any(spark.processes().values()), driver_log)
    parts = [path for path in output.rglob("part-*") if path.is_file()]
    written = sorted(int(line) for path in parts for line in path.read_text().split())
    assert written == list(range(RECORDS))
