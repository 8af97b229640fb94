"""ZooKeeper for tests: an ensemble of processes, from the jars that PySpark brings along."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from firesteel.spark.java import find_java
from tests.servers import leash
from tests.servers.install import LOG4J, spark_jars
from tests.servers.ports import free_ports

_START_SECONDS = 90.0
_SHARED = (
    "zookeeper-3 zookeeper-jute slf4j-api log4j-api-2 log4j-core-2 log4j-slf4j2-impl metrics-core "
    "snappy-java netty"
)
_CONFIGURATION = """
tickTime=200
initLimit=50
syncLimit=10
minSessionTimeout=400
maxSessionTimeout=60000
admin.enableServer=false
4lw.commands.whitelist=srvr
dataDir={data}
clientPort={port}
clientPortAddress=127.0.0.1
"""


def why_not() -> str | None:
    """Return the reason for which an ensemble cannot start, or None if it can."""
    if not list(spark_jars().glob("zookeeper-3*.jar")):
        return "PySpark has no ZooKeeper among its jars"
    return None


@contextmanager
def running_ensemble(directory: Path, size: int = 3) -> Iterator[Ensemble]:
    """An ensemble that answers. The test is skipped if there can be none."""
    if reason := why_not():
        pytest.skip(reason)
    ensemble = Ensemble(directory, size)
    try:
        ensemble.wait_until_it_answers()
        yield ensemble
    finally:
        ensemble.close()


class Ensemble:
    """Servers of ZooKeeper, a process each."""

    def __init__(self, directory: Path, size: int) -> None:
        ports = free_ports(3 * size)
        self.ports = ports[:size]
        self._directory = directory
        peers = "".join(
            f"server.{number + 1}=127.0.0.1:{ports[size + number]}:{ports[2 * size + number]}\n"
            for number in range(size)
        )
        for number, port in enumerate(self.ports):
            data = directory / f"server-{number}"
            data.mkdir(parents=True)
            (data / "myid").write_text(str(number + 1))
            text = _CONFIGURATION.format(data=data, port=port)
            (data / "zoo.cfg").write_text(text + (peers if size > 1 else ""))
            (data / "log4j2.properties").write_text(LOG4J)
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * size
        for number in range(size):
            self.start(number)

    @property
    def quorum(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def start(self, number: int) -> None:
        jars = spark_jars()
        names = _SHARED.split()
        class_path = [str(jar) for name in names for jar in sorted(jars.glob(f"{name}*.jar"))]
        data = self._directory / f"server-{number}"
        with (data / "log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    leash.__name__,
                    str(find_java()),
                    "-Xmx64m",
                    "-XX:+UseSerialGC",
                    "-XX:TieredStopAtLevel=1",
                    f"-Dlog4j2.configurationFile={data / 'log4j2.properties'}",
                    "-cp",
                    ":".join(class_path),
                    "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                    str(data / "zoo.cfg"),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    def kill(self, number: int) -> None:
        """End a server at once."""
        process = self._processes[number]
        assert process is not None
        assert process.stdin is not None
        # The leash kills the server when its input ends.
        process.stdin.close()
        process.wait()
        self._processes[number] = None

    def answers(self, number: int) -> bool:
        with suppress(OSError), closing(socket.socket()) as connection:
            connection.settimeout(2)
            connection.connect(("127.0.0.1", self.ports[number]))
            connection.sendall(b"srvr")
            return b"Mode:" in connection.recv(1 << 16)
        return False

    def wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        running = [number for number, one in enumerate(self._processes) if one is not None]
        while not all(self.answers(number) for number in running):
            for number in running:
                process = self._processes[number]
                if process is not None and process.poll() is not None:
                    raise RuntimeError(f"a server ended: {self._log(number)}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"no answer within {_START_SECONDS} s: {self._log(0)}")
            time.sleep(0.05)

    def _log(self, number: int) -> str:
        text = (self._directory / f"server-{number}" / "log").read_text(errors="replace")
        return text[-2000:]

    def close(self) -> None:
        for number, process in enumerate(self._processes):
            if process is not None:
                with suppress(OSError):
                    process.send_signal(signal.SIGCONT)
                self.kill(number)
