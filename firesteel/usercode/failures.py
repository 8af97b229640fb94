"""Which of several functions of the user's raised an error."""

from __future__ import annotations

import asyncio
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
from firesteel.usercode.unpicklable import UnpicklableRecordError

# What a user's function may raise to say that it failed, caught where the record is known.
# sys.exit() ends no process of ours. What else is no Exception is explained by the slot.
USER_ERRORS = (Exception, SystemExit, asyncio.CancelledError)

# Errors of ours that are raised where the operator is not known.
_WANTS_OPERATOR = (TypeMismatchError, UnpicklableRecordError, UserFunctionError, WriteFailedError)


class InterruptedSlotError(BaseException):
    """Raised within a user's function that takes too long to be canceled.

    It is no Exception, so that functions that go on after errors do not go on after this one.
    """


def is_failure(error: BaseException) -> bool:
    """Whether it means that something failed, and not that somebody wants an end of the work."""
    return not isinstance(error, InterruptedSlotError | GeneratorExit | KeyboardInterrupt)


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
    if isinstance(error, _WANTS_OPERATOR):
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


def called(operator: str, method: Callable[..., Any], *arguments: Any) -> Any:
    """Call a method of a connector: what it raises names the operator."""
    try:
        return method(*arguments)
    except BaseException as error:
        is_final = isinstance(error, FiresteelError) and not isinstance(error, _WANTS_OPERATOR)
        if is_final or not is_failure(error):
            raise
        raise user_function_error(error, operator, method, None, None) from error


def exit_error(error: BaseException) -> UserFunctionError:
    """sys.exit() and the like, which no operator has taken for a failure."""
    return raised_by(error, "", type(error).__qualname__)


def raised_by(error: BaseException, operator: str, otherwise: str) -> UserFunctionError:
    """Where only the traceback tells whose function it was; ``otherwise`` if not even that does."""
    code, known = None, bool(operator)
    trace: TracebackType | None = error.__traceback__
    while trace is not None and code is None:
        frame = trace.tb_frame
        if not _is_ours(trace):
            code = frame.f_code
        elif not known and isinstance(getattr(frame.f_locals.get("self"), "name", None), str):
            operator = frame.f_locals["self"].name
        trace = trace.tb_next
    return UserFunctionError(
        job="",
        operator=operator,
        function=otherwise if code is None else code.co_qualname,
        file=None if code is None else code.co_filename,
        line=None if code is None else code.co_firstlineno,
        record=None,
        traceback_text=_user_traceback(error),
        cause=type(error).__name__,
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


def failed_function(error: BaseException, *functions: Callable[..., Any]) -> Callable[..., Any]:
    """The one that was running, as the traceback shows; else the last."""
    running: set[CodeType] = set()
    trace = error.__traceback__
    while trace is not None:
        running.add(trace.tb_frame.f_code)
        trace = trace.tb_next
    for function in functions:
        if getattr(function, "__code__", None) in running:
            return function
        if getattr(getattr(function, "__func__", None), "__code__", None) in running:
            return function
    return functions[-1]
