"""Checks of the arguments that a program passes to streams and environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.expression_evaluation import evaluation_of
from firesteel.common.expressions import Expression
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.datastream.functions import Function, KeySelector, Partitioner
from firesteel.errors import InvalidProgramError, shorten


class ProgramTypeError(InvalidProgramError, TypeError):
    """Raised for an argument of the wrong type. It is a TypeError too, as in PyFlink."""


def require_instance(operation: str, argument: object, *expected: type, hint: str = "") -> None:
    """Check that ``argument`` is an instance of one of the classes ``expected``."""
    if isinstance(argument, expected):
        return
    raise _wrong(operation, argument, _names(expected), hint)


def require_function_or_callable(operation: str, function: object, expected: type) -> None:
    """Check that ``function`` is an instance of the class ``expected``, or a plain callable."""
    if isinstance(function, expected):
        return
    is_other_function = isinstance(function, Function) or (
        isinstance(function, type) and issubclass(function, Function)
    )
    if not callable(function) or is_other_function:
        raise _wrong(operation, function, f"{_names((expected,))} or a callable")


def expressions_of(operation: str, key_selector: object) -> tuple[Expression, ...]:
    """Return the expressions of a key; none if it is selected by a function."""
    if isinstance(key_selector, Expression):
        return (key_selector,)
    if not isinstance(key_selector, tuple):
        return ()
    for one in key_selector:
        require_instance(operation, one, Expression, hint='Write col("name").')
    if not key_selector:
        raise ProgramTypeError(f"{operation} needs at least one expression.")
    return key_selector


def key_selector_of(
    operation: str, key_selector: object
) -> tuple[Callable[[Any], Any], tuple[Function, ...]]:
    """Return a callable, and the function objects that the task must open."""
    require_function_or_callable(operation, key_selector, KeySelector)
    if isinstance(key_selector, KeySelector):
        return key_selector.get_key, (key_selector,)
    assert callable(key_selector)
    return key_selector, ()


def partitioner_of(
    operation: str, partitioner: object
) -> tuple[Callable[[Any, int], int], tuple[Function, ...]]:
    """Return a callable, and the function objects that the task must open."""
    require_function_or_callable(operation, partitioner, Partitioner)
    if isinstance(partitioner, Partitioner):
        return partitioner.partition, (partitioner,)
    assert callable(partitioner)
    return partitioner, ()


def as_type(operation: str, given: object, what: str = "output type") -> TypeInformation:
    """Return a type from an argument: None is any Python object, a list of types is a row of them.

    ``what`` names the argument in the error.
    """
    if given is None:
        return Types.PICKLED_BYTE_ARRAY()
    if isinstance(given, TypeInformation):
        return given
    if isinstance(given, list) and all(isinstance(field, TypeInformation) for field in given):
        return RowTypeInfo(given)
    raise ProgramTypeError(
        f"{operation}: the {what} must be a TypeInformation such as Types.STRING(), but it is "
        f"{shorten(given)}."
    )


def field_position(operation: str, field: object) -> int | str:
    """Return the position or name of a field."""
    if isinstance(field, int | str) and not isinstance(field, bool):
        return field
    raise ProgramTypeError(
        f"{operation}: the field must be an int (its position) or a str (its name), but it is "
        f"{shorten(field)}."
    )


def check_not_aligned(operation: str, strategy: WatermarkStrategy) -> None:
    """Check that a strategy has no watermark alignment: only a source can be slowed down."""
    if strategy.alignment is not None:
        raise InvalidProgramError(
            f"{operation}: watermark alignment needs a source that can be slowed down. Give the "
            f"strategy to env.from_source()."
        )


def check_timestamp_assigner(
    operation: str, strategy: WatermarkStrategy, record_type: TypeInformation
) -> None:
    """Check that an expression for timestamps is an integer of the records."""
    assigner = strategy.timestamp_assigner
    if not isinstance(assigner, Expression):
        return
    found = evaluation_of(assigner, record_type).type_info
    if found not in (Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG()):
        raise InvalidProgramError(
            f"{operation}: a timestamp must be an integer, in milliseconds since 1970, but "
            f"{assigner!r} is of the type {found}."
        )


def _wrong(operation: str, argument: object, expected: str, hint: str = "") -> ProgramTypeError:
    if isinstance(argument, type):
        given = f"the class {argument.__qualname__} itself"
        hint = hint or f"Pass an object: {argument.__qualname__}(...)."
    else:
        given = f"{shorten(argument)} of type {type(argument).__qualname__}"
    message = f"{operation} expects {expected}, but got {given}."
    return ProgramTypeError(f"{message} {hint}" if hint else message)


def _names(expected: tuple[type, ...]) -> str:
    return " or ".join(
        f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}" for kind in expected
    )


APPEND, UPDATE, COMPLETE = _ALL = ("append", "update", "complete")


def check_output_mode(mode: str) -> str:
    """Check the name of an output mode. The modes have Spark's names."""
    if mode not in _ALL:
        raise InvalidProgramError(
            f"output_mode expects one of {', '.join(_ALL)}, but got {shorten(mode)}."
        )
    return mode
