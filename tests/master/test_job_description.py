from __future__ import annotations

import json
from dataclasses import asdict

from firesteel.common.configuration import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import JobExecutionError, UserFunctionError
from firesteel.master.job_description import JobDescription, describe_job, record_failure


def described() -> JobDescription:
    env = StreamExecutionEnvironment(Configuration()).set_parallelism(2)
    numbers = env.from_collection([1, 2]).map(lambda number: number).name("double")
    numbers.key_by(lambda number: number).sum().print()
    job = env._compile("sums")
    return describe_job("0" * 32, job.settings, job.levels)


def test_vertices_have_their_chains_and_inputs() -> None:
    source, double, total = described().vertices
    assert [vertex.parallelism for vertex in (source, double, total)] == [1, 2, 2]
    assert source.inputs == ()
    assert [(one.vertex, one.ship_strategy) for one in double.inputs] == [(source.id, "REBALANCE")]
    assert [(one.vertex, one.ship_strategy) for one in total.inputs] == [(double.id, "HASH")]
    assert [operator.kind for operator in total.operators] == ["operator", "sink"]
    assert [vertex.level for vertex in (source, double, total)] == [0, 1, 2]
    assert all(len(vertex.id) == 32 for vertex in (source, double, total))


def test_a_description_survives_json() -> None:
    description = described()
    assert JobDescription.from_json(json.loads(json.dumps(asdict(description)))) == description


def test_the_failure_of_a_function_names_operator_and_record() -> None:
    error = UserFunctionError(
        job="sums",
        operator="double",
        function="f",
        file="job.py",
        line=1,
        record="0",
        traceback_text="Traceback...",
        cause="ZeroDivisionError",
    )
    record = record_failure(error, 5, restarted=True)
    assert (record.exception_name, record.operator, record.record) == (
        "ZeroDivisionError",
        "double",
        "0",
    )
    assert record.stacktrace.startswith("Traceback...")
    assert record.restarted


def test_any_failure_has_its_cause_in_the_text() -> None:
    error = JobExecutionError("no answer")
    error.__cause__ = OSError("disk")
    record = record_failure(error, 5, restarted=False)
    assert record.exception_name == "firesteel.errors.JobExecutionError"
    assert "disk" in record.stacktrace
    assert "no answer" in record.stacktrace
