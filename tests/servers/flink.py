"""Flink's own clients: the command line and the dashboard of a Flink 2.3 distribution.

``python -m tests.servers.flink`` fetches them from PyPI (330 MB) into ``.servers/flink``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FLINK = REPOSITORY / ".servers" / "flink"
_PACKAGE = "apache-flink-libraries>=2.3,<2.4"
_MAIN = "org.apache.flink.client.cli.CliFrontend"
_LOGGING = """rootLogger.level = ERROR
rootLogger.appenderRef.console.ref = Console
appender.console.name = Console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %m%n
"""


def jars() -> list[Path]:
    """Return the jars of the distribution: fetched by this module, or with PyFlink."""
    peers = sorted((REPOSITORY / ".bench").glob("pyflink/lib/python*/site-packages/pyflink/lib"))
    for directory in (FLINK / "lib", *peers):
        found = sorted(directory.glob("*.jar"))
        if any(jar.name.startswith("flink-dist-2.3") for jar in found):
            return found
    return []


def why_not() -> str | None:
    """Return the reason why there is no Flink, or None if there is one."""
    return None if jars() else "there is no Flink 2.3: run `make flink`, which fetches 330 MB"


def install() -> None:
    if jars():
        return
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, "--dest", directory, _PACKAGE], check=True)
        [wheel] = Path(directory).glob("*.whl")
        (FLINK / "lib").mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.startswith("pyflink/lib/") and name.endswith(".jar"):
                    (FLINK / "lib" / Path(name).name).write_bytes(archive.read(name))


def unpack_dashboard(directory: Path) -> Path:
    """Unpack the files of Flink's dashboard, and return their directory."""
    [distribution] = [jar for jar in jars() if jar.name.startswith("flink-dist")]
    with zipfile.ZipFile(distribution) as archive:
        files = [name for name in archive.namelist() if name.startswith("web/")]
        archive.extractall(directory, files)
    return directory / "web"


class FlinkCommands:
    """Runs ``bin/flink``: the same Java program with the same class path."""

    def __init__(self, address: str, directory: Path) -> None:
        """``directory`` takes the settings of the client."""
        self._address = address
        self._directory = directory
        host, _, port = address.partition(":")
        (directory / "config.yaml").write_text(f"rest.address: {host}\nrest.port: {port}\n")
        (directory / "log4j.properties").write_text(_LOGGING)

    def __call__(self, action: str, *arguments: str, code: int = 0) -> str:
        """Run an action to its end and return its output."""
        from firesteel.spark.java import find_java

        done = subprocess.run(
            [
                str(find_java()),
                f"-Dlog4j.configurationFile=file:{self._directory / 'log4j.properties'}",
                "-cp",
                ":".join(map(str, jars())),
                _MAIN,
                action,
                "-m",
                self._address,
                *arguments,
            ],
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "FLINK_CONF_DIR": str(self._directory)},
            check=False,
        )
        output = done.stdout + done.stderr
        assert done.returncode == code, output
        return output


if __name__ == "__main__":
    install()
