"""Shared by the operators' tests."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from firesteel.datastream import EmbeddedRocksDBStateBackend, HashMapStateBackend
from firesteel.errors import UserFunctionError
from firesteel.testing import OperatorHarness


@pytest.fixture(params=[HashMapStateBackend, EmbeddedRocksDBStateBackend])
def every_backend(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The test runs on each state backend."""
    monkeypatch.setattr(OperatorHarness, "default_state_backend", request.param())
    made: list[OperatorHarness] = []
    create = OperatorHarness.__init__

    def remember(harness: OperatorHarness, *arguments: Any, **options: Any) -> None:
        create(harness, *arguments, **options)
        made.append(harness)

    monkeypatch.setattr(OperatorHarness, "__init__", remember)
    yield
    for harness in made:
        harness.close()


Blames = Callable[..., UserFunctionError]


@pytest.fixture
def blames() -> Blames:
    """Feed the values; the error must name operator, function, file, line and the last record."""

    def check(
        harness: OperatorHarness,
        values: list[Any],
        *,
        operator: str,
        function: Callable[..., Any],
        second: bool = False,
    ) -> UserFunctionError:
        process = harness.process_element2 if second else harness.process_element1
        for value in values[:-1]:
            process(value)
        # Records behind the bad one in the same batch do not change the blame.
        batch = [*values, values[0]]
        with pytest.raises(UserFunctionError) as caught:
            process(values[-1]) if second else harness.process_elements(batch)
        error = caught.value
        code = inspect.unwrap(function).__code__
        assert error.operator == operator
        assert error.function == function.__qualname__
        assert (error.file, error.line) == (code.co_filename, code.co_firstlineno)
        assert error.record == repr(values[-1])
        assert "ZeroDivisionError" in error.traceback_text
        assert "firesteel/task" not in error.traceback_text
        return error

    return check
