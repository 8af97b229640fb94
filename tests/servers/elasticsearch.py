"""Elasticsearch for tests: a node in a temporary directory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firesteel.spark.java import find_java
from tests.servers import leash
from tests.servers.install import ELASTICSEARCH
from tests.servers.ports import free_ports

# A machine that runs many tests at once may need minutes to start a JVM.
_START_SECONDS = 240
_PROGRAM = Path(__file__).with_name("ElasticsearchNode.java")


def why_not() -> str | None:
    """Return the reason for which a node cannot start, or None if it can."""
    if not list(ELASTICSEARCH.glob("elasticsearch-[0-9]*.jar")):
        return "Elasticsearch's jars are not in .servers: run `make test-all`"
    modules = subprocess.run(
        [str(find_java()), "--list-modules"], capture_output=True, text=True, check=False
    )
    if "jdk.compiler" not in modules.stdout:
        return "Elasticsearch needs Java with a compiler (a JDK)"
    return None


@contextmanager
def running_elasticsearch() -> Iterator[ElasticsearchServer]:
    """A node that answers. The test is skipped if there can be none."""
    if reason := why_not():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="elasticsearch-") as directory:
        server = ElasticsearchServer(Path(directory))
        try:
            server.start()
            yield server
        finally:
            server.close()


class ElasticsearchServer:
    """A node, which can be killed and started again. It keeps its documents."""

    def __init__(self, directory: Path) -> None:
        self._output = directory / "output"
        (directory / "config").mkdir()
        port, transport = free_ports(2)
        self.host = f"127.0.0.1:{port}"
        self._command = [str(find_java()), "-Xmx512m", "-XX:TieredStopAtLevel=1"]
        self._command += ["-cp", f"{ELASTICSEARCH}/*", str(_PROGRAM)]
        self._command += [str(directory), str(port), str(transport)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the node, also after ``close``."""
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, leash.__file__, *self._command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, self._output.read_text()[-5000:]
            assert time.monotonic() < deadline, self._output.read_text()[-5000:]
            time.sleep(0.1)

    def close(self) -> None:
        """Kill the node."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(timeout=30)

    def request(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.host}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def index(self, properties: dict[str, Any] | None = None) -> str:
        """A new index, whose fields have types."""
        name = f"index-{uuid.uuid4().hex[:8]}"
        mappings = {"mappings": {"properties": properties}} if properties else {}
        settings = {"number_of_replicas": 0, "number_of_shards": 2}
        self.request("PUT", f"/{name}", {"settings": settings, **mappings})
        return name

    def documents(self, index: str) -> dict[str, dict[str, Any]]:
        """The documents of an index, at most 10,000, by their ids."""
        self.request("POST", f"/{index}/_refresh")
        found = self.request("POST", f"/{index}/_search", {"size": 10_000})
        return {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}

    def _answers(self) -> bool:
        try:
            self.request("GET", "/_cluster/health?wait_for_status=yellow&timeout=10s")
        except (OSError, urllib.error.URLError, ValueError):
            return False
        return True
