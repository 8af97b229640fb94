"""Shared by the operators' tests."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from firesteel.errors import UserFunctionError
from firesteel.testing import OperatorHarness

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
