"""What Spark raises, and what of it a person wants to read."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from firesteel.slothost.client import WHY_PROCESSES_DIE

#: A canceled job comes as py4j's error, most others as PySpark's.
SPARK_ERRORS = (PySparkException, Py4JError)

# The last line of a traceback of ours, which Spark quotes among its own.
_OURS = re.compile(r"^\s*firesteel\.[\w.]+Error: (.+)$", re.MULTILINE)
# What Spark says where a slot runs in its worker.
_WORKER_DIED = "Python worker exited unexpectedly"


def failure_of(job_name: str, error: BaseException) -> str:
    """Why Spark has given up the job."""
    text = str(error)
    said = _OURS.findall(text)
    if said:
        return f"Job '{job_name}' failed: {said[-1]}"
    if _WORKER_DIED in text:
        return f"Job '{job_name}' failed: a Python worker of Spark died. {WHY_PROCESSES_DIE}"
    return f"Job '{job_name}' failed: Spark could not run it: {reason_of(error)}"


def reason_of(error: BaseException) -> str:
    """The message without the JVM's stack frames."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return "\n".join(line for line in lines if not line.lstrip().startswith(("at ", "... ")))
