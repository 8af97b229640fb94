"""What Spark raises, and what of it a person wants to read."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

#: A canceled job comes as py4j's error, most others as PySpark's.
SPARK_ERRORS = (PySparkException, Py4JError)


def reason_of(error: BaseException) -> str:
    """The message without the JVM's stack frames."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return "\n".join(line for line in lines if not line.lstrip().startswith(("at ", "... ")))
