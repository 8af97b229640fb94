"""Explanations of objects that cannot be pickled, with their path in a function or record."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Iterator
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

from firesteel.errors import FiresteelError, InvalidProgramError, shorten
from firesteel.usercode import pickling

_DEPTH = 8


class UnpicklableFunctionError(InvalidProgramError, TypeError):
    """A function cannot be sent to the tasks."""


class UnpicklableRecordError(FiresteelError, TypeError):
    """A record or a value of a state cannot be sent or stored.

    ``operator`` is set when the error leaves the operator.
    """

    def __init__(
        self, record: str, kind: str, reason: str, what: str = "record", operator: str | None = None
    ) -> None:
        super().__init__(reason)
        self.record = record
        self.kind = kind
        self.reason = reason
        self.what = what
        self.operator = operator
        self.job: str | None = None

    def __str__(self) -> str:
        where = f"Operator '{self.operator}': " if self.operator else ""
        where = f"Job '{self.job}' failed. {where}" if self.job else where
        return (
            f"{where}the {self.what} {self.record}, a {self.kind}, cannot be pickled: "
            f"{self.reason}. Records and state are pickled to send and store them. Emit and store "
            "plain data, and create locks, connections, clients and open files in open() of the "
            "function."
        )


def unpicklable_record(
    error: Exception, values: Iterable[Any], operator: str | None = None, what: str = "record"
) -> Exception:
    """Return the error for ``values`` whose pickling raised ``error``. It names the value."""
    for value in values:
        reason = why_not(value)
        if reason is not None:
            path, culprit = _culprit(value, _DEPTH)
            if path:
                reason = f"{path[-1]} is a {_kind(culprit)}, {why_not(culprit)}"
            return UnpicklableRecordError(shorten(value), _kind(value), reason, what, operator)
    return error


def unpicklable_function(error: Exception, operator: str, spec: Any) -> UnpicklableFunctionError:
    """Return the error for a part of an operator: its function, source or sink."""
    path, culprit = _culprit(spec, _DEPTH)
    owner = path[0] if path else "its function"
    hidden = ""
    if len(path) > 1:
        hidden = f" The cause: {' of '.join(reversed(path[1:]))} is a {_kind(culprit)}."
    return UnpicklableFunctionError(
        f"Operator '{operator}' cannot be sent to its tasks, because {owner} cannot be pickled: "
        f"{error}.{hidden} Create locks, connections, clients and open files in open() of a "
        "function class, which runs in the task. Do not create them in __init__() or outside a "
        "lambda."
    )


def described_function(spec: Any) -> str:
    """Describe the user's part of an operator's spec."""
    for _, child in _attributes(spec):
        is_data = type(child).__module__ == "builtins" or isinstance(child, Enum)
        if callable(child) or not is_data:
            return _object(child)
    return "its parts"


def why_not(value: Any) -> str | None:
    """Return the reason why ``value`` cannot be pickled, or None if it can."""
    try:
        pickling.dumps(value)
    except Exception as error:  # noqa: BLE001 - __reduce__ of a user class may raise any error
        return str(error) or type(error).__name__
    return None


def _culprit(value: Any, depth: int) -> tuple[list[str], Any]:
    """Return the path to the innermost object that cannot be pickled, and the object."""
    if depth:
        for name, child in _children(value):
            if why_not(child) is not None:
                path, culprit = _culprit(child, depth - 1)
                return [name, *path], culprit
    return [], value


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, FunctionType):
        yield from _variables(value)
    elif isinstance(value, MethodType):
        yield _object(value.__self__), value.__self__
    elif isinstance(value, functools.partial):
        yield _object(value.func), value.func
        yield "an argument", value.args
        yield "an argument", value.keywords
    elif isinstance(value, dict):
        for key, child in value.items():
            yield f"the entry {shorten(key, 40)}", child
    elif isinstance(value, list | tuple | set | frozenset):
        for child in value:
            yield f"an element of the {type(value).__name__}", child
    else:
        yield from _attributes(value)


def _variables(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the variables, globals and defaults that a function uses."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"the variable '{name}'", cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield f"the global '{name}'", function.__globals__[name]
    for default in function.__defaults__ or ():
        yield "a default argument", default


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    names = list(getattr(value, "__dict__", ()))
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    for name in names:
        child = getattr(value, name, None)
        # Attributes of Firesteel's specs are described, because the user does not know their names.
        ours = type(value).__module__.startswith("firesteel.graph.")
        yield _object(child) if ours else f"the attribute '{name}'", child


def _object(value: Any) -> str:
    value = inspect.unwrap(value) if callable(value) else value
    if isinstance(value, FunctionType):
        code = value.__code__
        return f"the function {value.__qualname__} ({code.co_filename}:{code.co_firstlineno})"
    if isinstance(value, MethodType):
        return _object(value.__self__)
    if isinstance(value, type | BuiltinFunctionType):
        return value.__qualname__
    return f"the {type(value).__qualname__} object"


def _kind(value: Any) -> str:
    cls = type(value)
    return (
        cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    )
