"""Fetches the servers that tests need into ``.servers``: ``python -m tests.servers.install``.

The jars come through the Ivy that PySpark brings along.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from firesteel.spark.java import find_java

REPOSITORY = Path(__file__).parents[2]
KAFKA = REPOSITORY / ".servers" / "kafka"
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


def install_kafka() -> None:
    """Raises ``RuntimeError`` with what Ivy said, if it cannot be fetched."""
    [ivy] = spark_jars().glob("ivy-*.jar")
    command = [str(find_java()), "-jar", str(ivy)]
    command += ["-settings", str(_HERE / "ivysettings.xml"), "-ivy", str(_HERE / "kafka.xml")]
    command += ["-cache", str(KAFKA.parent / "ivy")]
    command += ["-retrieve", f"{KAFKA}/[artifact]-[revision].[ext]", "-sync"]
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
        install_kafka()
    except RuntimeError as error:
        sys.exit(f"Kafka could not be fetched: {error}")
