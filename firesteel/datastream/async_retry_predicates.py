"""Ready-made answers to the question whether a request should be made once more."""

from __future__ import annotations

from typing import Any

__all__ = ["empty_result_predicate", "exception_type_predicate", "has_exception_predicate"]


def empty_result_predicate(result: list[Any] | None) -> bool:
    """No result at all.

    >>> empty_result_predicate([])
    True
    """
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """Any exception."""
    return error is not None


def exception_type_predicate(
    error: BaseException | None, expected_error_type: type[BaseException]
) -> bool:
    """An exception of one type; bind the type with ``functools.partial`` or a lambda.

    >>> from functools import partial
    >>> retry = partial(exception_type_predicate, expected_error_type=ConnectionError)
    >>> retry(ConnectionResetError()), retry(ValueError())
    (True, False)
    """
    return isinstance(error, expected_error_type)
