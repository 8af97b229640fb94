from __future__ import annotations

import json

from firesteel.errors import JobCancelledError, JobExecutionError, UserFunctionError
from firesteel.protocol.error_json import decode_error, encode_error


def test_an_error_keeps_its_class_facts_and_text() -> None:
    error = UserFunctionError(
        job="sums",
        operator="map",
        function="f",
        file="job.py",
        line=3,
        record="0",
        traceback_text="Traceback...",
        cause="ZeroDivisionError",
    )
    decoded = decode_error(json.loads(json.dumps(encode_error(error))))
    assert isinstance(decoded, UserFunctionError)
    assert (decoded.operator, decoded.line, decoded.cause) == ("map", 3, "ZeroDivisionError")
    assert str(decoded) == str(error)


def test_the_end_of_a_canceled_job_is_told_as_such() -> None:
    decoded = decode_error(encode_error(JobCancelledError("0" * 32)))
    assert isinstance(decoded, JobCancelledError)


def test_an_error_of_a_different_module_becomes_text() -> None:
    class OtherError(Exception):
        pass

    decoded = decode_error(encode_error(OtherError("disk")))
    assert isinstance(decoded, JobExecutionError)
    assert "disk" in str(decoded)


def test_a_class_that_is_no_error_is_not_called() -> None:
    decoded = decode_error({"class": "firesteel.errors.shorten", "message": "no"})
    assert isinstance(decoded, JobExecutionError)
