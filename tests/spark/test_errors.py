"""Shortening Spark's long error messages."""

from __future__ import annotations

import pytest

from firesteel.spark.errors import failure_of

_SLOT_DIED = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "slot_client.py", line 5, in run_in_host
firesteel.slothost.connection.BrokenHostError: the connection broke off

The above exception was the direct cause of the following exception:

firesteel.slothost.connection.BrokenHostError: the process of slot 0 died (exit code 7).
	at org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)
=== Streaming Query ===
"""
_WORKER_DIED = """An error occurred while calling o1.collectToPython.
: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).
	at org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:1)
"""
_OTHER = """[NO_DISK] No space.
	at org.apache.spark.Somewhere(Where.scala:1)
	... 3 more
"""
_QUERY = """Job aborted due to stage failure: Task 0 in stage 8.0 failed 1 times.
Driver stacktrace:
=== Streaming Query ===
Logical Plan:
+- MemoryStream
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_SLOT_DIED, "Job 'j' failed: the process of slot 0 died (exit code 7)."),
        (_WORKER_DIED, "Job 'j' failed: a Python worker of Spark died. A function"),
        (_OTHER, "Job 'j' failed: Spark could not run it: [NO_DISK] No space."),
        (_QUERY, "Job 'j' failed: Spark could not run it: Job aborted due to stage failure: Task"),
    ],
    ids=["slot", "worker", "other", "query"],
)
def test_a_failure_says_what_happened_without_frames_of_the_jvm(text: str, said: str) -> None:
    message = failure_of("j", RuntimeError(text))
    assert message.startswith(said)
    assert "\n" not in message
