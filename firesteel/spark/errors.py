"""Messages for users, from the errors that Spark raises."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from firesteel.slothost.client import WHY_PROCESSES_DIE

#: A canceled job raises an error of py4j. Most other failures raise one of PySpark.
SPARK_ERRORS = (PySparkException, Py4JError)

# The last line of a traceback of Firesteel, which Spark quotes in its message.
_OURS = re.compile(r"^\s*firesteel\.[\w.]+Error: (.+)$", re.MULTILINE)
# Lines of Spark before its stack frames, and before the plan of the query.
_BEFORE_FRAMES, _BEFORE_PLAN = "Driver stacktrace:", "=== Streaming Query ==="
# Spark's message about a dead worker, for slots that live in Spark's workers.
_WORKER_DIED = "Python worker exited unexpectedly"


def failure_of(job_name: str, error: BaseException) -> str:
    """Return the reason why Spark gave up the job."""
    text = str(error)
    said = _OURS.findall(text)
    if said:
        return f"Job '{job_name}' failed: {said[-1]}"
    if _WORKER_DIED in text:
        return f"Job '{job_name}' failed: a Python worker of Spark died. {WHY_PROCESSES_DIE}"
    return f"Job '{job_name}' failed: Spark could not run it: {reason_of(error)}"


def loss_of(job_name: str, failure: str) -> str:
    """Return the message about a process that was lost, from the message of ``failure_of``."""
    reason = failure.removeprefix(f"Job '{job_name}' failed: ")
    return f"Job '{job_name}' has lost a process, and continues from its last epoch: {reason}"


def reason_of(error: BaseException) -> str:
    """Return the message without the stack frames of the JVM and the plan of the query."""
    text = str(error).partition(_BEFORE_PLAN)[0].replace(_BEFORE_FRAMES, "")
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(line for line in lines if not line.lstrip().startswith(("at ", "... ")))
