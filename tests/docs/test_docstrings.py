"""Public names have docstrings with examples, and the examples give the output they show."""

from __future__ import annotations

import doctest

import pytest

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.spark.session import stop_own_session
from tests.docs import docstrings
from tests.docs.harness_launcher import on_harness


@pytest.fixture(autouse=True)
def _default_settings(monkeypatch) -> None:
    for variable in ("FIRESTEEL_CONF_DIR", "FLINK_CONF_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(StreamExecutionEnvironment, "_default_local_parallelism", None)


@pytest.mark.parametrize("module", docstrings.modules_with_examples())
def test_examples_run(module: str) -> None:
    found = [one for one in docstrings.examples(module) if not docstrings.needs_spark(one)]
    with on_harness():
        reports = [docstrings.failures(example) for example in found]
    assert "".join(reports) == ""


@pytest.mark.spark
def test_examples_with_a_spark_session_run(request: pytest.FixtureRequest) -> None:
    # Spark's processes keep the directory they start in, and an example deletes its own.
    StreamExecutionEnvironment().get_spark_session()
    request.addfinalizer(stop_own_session)  # other tests need one with more slots
    found = [
        example
        for module in docstrings.modules_with_examples()
        for example in docstrings.examples(module)
        if docstrings.needs_spark(example)
    ]
    assert "".join(docstrings.failures(example) for example in found) == ""


def test_public_names_have_docstrings_with_examples() -> None:
    missing, excused = docstrings.undocumented_names(), docstrings.excused().keys()
    assert missing - excused == set(), "write an example, see 'Docstrings' in CONTRIBUTING.md"
    assert excused - missing == set(), "run: python -m tests.docs.docstrings"


def test_examples_that_fail_are_reported() -> None:
    text = """
    >>> sink = env.from_collection([1, 2]).print()
    >>> result = env.execute()
    1
    3
    """
    namespace = {"env": StreamExecutionEnvironment().set_parallelism(1)}
    example = doctest.DocTestParser().get_doctest(text, namespace, "wrong", None, 0)
    with on_harness():
        report = docstrings.failures(example)
    assert "Expected:\n    1\n    3\nGot:\n    1\n    2\n" in report
