"""Fetches the jars of a server into ``.servers``: ``python -m tests.servers.install kafka``.

The jars come through the Ivy that PySpark brings along.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from firesteel.spark.java import find_java

REPOSITORY = Path(__file__).parents[2]
SERVERS = REPOSITORY / ".servers"
KAFKA = SERVERS / "kafka"
ELASTICSEARCH = SERVERS / "elasticsearch"
_HERE = Path(__file__).parent
_SECONDS = 240

# The log of a server: warnings, on its standard output.
LOG4J = """
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %c %m%n
"""


def spark_jars() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "jars"


def install(name: str) -> None:
    """Fetch what the file of a name lists.

    Raises:
        RuntimeError: Ivy cannot fetch it. The text is what Ivy said.
    """
    [ivy] = spark_jars().glob("ivy-*.jar")
    command = [str(find_java()), "-jar", str(ivy)]
    command += ["-settings", str(_HERE / "ivysettings.xml"), "-ivy", str(_HERE / f"{name}.xml")]
    command += ["-cache", str(SERVERS / "ivy")]
    command += ["-retrieve", f"{SERVERS / name}/[artifact]-[revision].[ext]", "-sync"]
    try:
        fetched = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"the repository did not answer within {_SECONDS} s") from None
    if fetched.returncode != 0:
        raise RuntimeError("\n".join(fetched.stdout.splitlines()[-25:]))


if __name__ == "__main__":
    try:
        install(sys.argv[1])
    except RuntimeError as error:
        sys.exit(f"{sys.argv[1]} could not be fetched: {error}")
