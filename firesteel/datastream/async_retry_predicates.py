"""Predicates for retry strategies of asynchronous requests."""

from __future__ import annotations

from typing import Any

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: list[Any] | None) -> bool:
    """Return True if there is no result.

    Args:
        result: The results of ``async_invoke``.

    >>> empty_result_predicate([]), empty_result_predicate(["a"])
    (True, False)
    """
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """Return True if there is an exception.

    Args:
        error: The exception of ``async_invoke``, or None.

    >>> has_exception_predicate(ValueError()), has_exception_predicate(None)
    (True, False)
    """
    return error is not None


def exception_type_predicate(
    error: BaseException | None, expected_error_type: type[BaseException]
) -> bool:
    """Return True for an exception of a type. Bind the type with ``functools.partial`` or a lambda.

    Args:
        error: The exception of ``async_invoke``, or None.
        expected_error_type: The type.

    >>> from functools import partial
    >>> retry = partial(exception_type_predicate, expected_error_type=ConnectionError)
    >>> retry(ConnectionResetError()), retry(ValueError())
    (True, False)
    """
    return isinstance(error, expected_error_type)
