"""Errors of user functions, with the operator, function and record that they belong to."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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

# Errors with which a user function fails. They are caught where the record is known. sys.exit()
# must not end a process of Firesteel. The slot explains other errors that are not an Exception.
USER_ERRORS = (Exception, SystemExit, asyncio.CancelledError)

# Errors of Firesteel that are raised where the operator is not known.
_WANTS_OPERATOR = (TypeMismatchError, UnpicklableRecordError, UserFunctionError, WriteFailedError)


class InterruptedSlotError(BaseException):
    """Raised inside a user function that runs too long after the job was canceled.

    It is not an Exception, so a function that ignores exceptions does not ignore this one.
    """


def is_failure(error: BaseException) -> bool:
    """Return True for a failure, and False for a request to end the work."""
    return not isinstance(error, InterruptedSlotError | GeneratorExit | KeyboardInterrupt)


def user_function_error(
    error: BaseException,
    operator: str,
    function: Callable[..., Any],
    values: Sequence[Any] | None,
    iterator: Iterator[Any] | None,
) -> FiresteelError:
    """Return an error that names the operator, the function, and the record.

    ``iterator`` is the list iterator that feeds the function. Its remaining length identifies the
    record, so the loop does not have to count records.
    """
    if isinstance(error, _WANTS_OPERATOR):
        # The code that raised this error knew everything, except perhaps the operator.
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
    """Call a method of a connector. Its errors name the operator."""
    try:
        return method(*arguments)
    except BaseException as error:
        is_final = isinstance(error, FiresteelError) and not isinstance(error, _WANTS_OPERATOR)
        if is_final or not is_failure(error):
            raise
        raise user_function_error(error, operator, method, None, None) from error


def exit_error(error: BaseException) -> UserFunctionError:
    """Return the error for ``sys.exit()`` and similar calls that no operator has explained."""
    return raised_by(error, "", type(error).__qualname__)


def raised_by(error: BaseException, operator: str, otherwise: str) -> UserFunctionError:
    """Return the error for a function that only the traceback identifies.

    ``otherwise`` names the function if the traceback has no frame of the user.
    """
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
    """Return the traceback without the frames of Firesteel before the user's code."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()


def _is_ours(trace: TracebackType) -> bool:
    module = str(trace.tb_frame.f_globals.get("__name__", ""))
    return module == "firesteel" or module.startswith("firesteel.")


def failed_function(error: BaseException, *functions: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that was running according to the traceback, or the last one."""
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


class WrongResultError(FiresteelError, TypeError):
    """A function of the user returned a value of the wrong type."""

    def __init__(self, function: Callable[..., Any], expected: str, result: object) -> None:
        name = getattr(function, "__qualname__", type(function).__qualname__)
        super().__init__(f"{name} must return {expected}, but it returned {shorten(result)}")
        self.function = function


@contextmanager
def explaining(
    functions: Sequence[Callable[..., Any]],
    values: Sequence[Any] | None = None,
    iterator: Iterator[Any] | None = None,
) -> Iterator[None]:
    """Turn an error of a user function into one that names the function and the record.

    Args:
        functions: The functions that may have raised it. The last one is named if none of them
            is in the traceback.
        values: The records at hand.
        iterator: The iterator over ``values``, whose position identifies the record.
    """
    try:
        yield
    except WrongResultError as error:
        raise _failure(error, error.function, values, iterator) from error
    except FiresteelError:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
        raise _failure(error, failed_function(error, *functions), values, iterator) from error


def _failure(
    error: BaseException,
    function: Callable[..., Any],
    values: Sequence[Any] | None,
    iterator: Iterator[Any] | None,
) -> Exception:
    return user_function_error(error, "", function, values, iterator)
