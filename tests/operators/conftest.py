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
        harness.open()
        with pytest.raises(UserFunctionError) as caught:
            if second:
                for value in values:
                    harness.process_element2(value)
            else:
                harness.process_elements(values)
        error = caught.value
        code = inspect.unwrap(function).__code__
        assert error.operator == operator
        assert error.function == function.__qualname__
        assert (error.file, error.line) == (code.co_filename, code.co_firstlineno)
        # The records after the one that failed were never seen.
        assert error.record == repr(values[-1])
        assert "ZeroDivisionError" in error.traceback_text
        assert "firesteel/task" not in error.traceback_text
        return error

    return check
