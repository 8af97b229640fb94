"""Turning a failure of the user's code into an error that says where it happened."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, TracebackType
from typing import Any

from firesteel.errors import (
    FiresteelError,
    TypeMismatchError,
    UserFunctionError,
    WriteFailedError,
    shorten,
)
from firesteel.unpicklable import UnpicklableRecordError

# What a user's function may raise to say that it failed. sys.exit() ends no process of ours.
USER_ERRORS = (Exception, SystemExit)


def user_function_error(
    error: BaseException,
    operator: str,
    function: Callable[..., Any],
    values: Sequence[Any] | None,
    iterator: Iterator[Any] | None,
) -> FiresteelError:
    """Name the operator, the function, and the record it failed on.

    ``iterator`` is the list iterator the function was fed from: what it has not yet given out
    tells which record was the last, so the loop itself keeps no count.
    """
    if isinstance(
        error, TypeMismatchError | UnpicklableRecordError | UserFunctionError | WriteFailedError
    ):
        # Raised further down, where more is known; perhaps not the operator.
        error.operator = error.operator or operator
        return error
    record = None
    if values:
        left = iterator.__length_hint__() if iterator is not None else 0  # type: ignore[attr-defined]
        index = len(values) - left - 1
        if 0 <= index < len(values):
            record = shorten(values[index])
    code = _code_of(function)
    return UserFunctionError(
        job="",
        operator=operator,
        function=getattr(function, "__qualname__", type(function).__qualname__),
        file=code.co_filename if code else None,
        line=code.co_firstlineno if code else None,
        record=record,
        traceback_text=_user_traceback(error),
        cause=type(error).__name__,
    )


def exit_error(error: SystemExit) -> UserFunctionError:
    """sys.exit() that no operator has taken for a failure: the traceback tells who called it."""
    operator, code = "", None
    trace: TracebackType | None = error.__traceback__
    while trace is not None and code is None:
        frame = trace.tb_frame
        if not _is_ours(trace):
            code = frame.f_code
        elif isinstance(getattr(frame.f_locals.get("self"), "name", None), str):
            operator = frame.f_locals["self"].name
        trace = trace.tb_next
    return UserFunctionError(
        job="",
        operator=operator,
        function="sys.exit" if code is None else code.co_qualname,
        file=None if code is None else code.co_filename,
        line=None if code is None else code.co_firstlineno,
        record=None,
        traceback_text=_user_traceback(error),
        cause="SystemExit",
    )


def _code_of(function: Callable[..., Any]) -> CodeType | None:
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None:
        code = getattr(getattr(function, "__func__", None), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _user_traceback(error: BaseException) -> str:
    """The traceback without the frames of Firesteel's own that led to the user's code."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()


def _is_ours(trace: TracebackType) -> bool:
    module = str(trace.tb_frame.f_globals.get("__name__", ""))
    return module == "firesteel" or module.startswith("firesteel.")
