"""What Spark raises, and what of it a person wants to read."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

#: A canceled job comes as py4j's error, most others as PySpark's.
SPARK_ERRORS = (PySparkException, Py4JError)

# The last line of a traceback of ours, which Spark quotes among its own.
_OURS = re.compile(r"^\s*firesteel\.[\w.]+Error: (.+)$", re.MULTILINE)


def reason_of(error: BaseException) -> str:
    """What Firesteel's own task said, if it did; else the message without the JVM's stack frames."""
    said = _OURS.findall(str(error))
    if said:
        return str(said[-1])
    lines = [line for line in str(error).splitlines() if line.strip()]
    return "\n".join(line for line in lines if not line.lstrip().startswith(("at ", "... ")))
