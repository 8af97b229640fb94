"""The keys that a key selector gives: through their declared type, once more, and what is wrong with a bad one."""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import FunctionType
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import FiresteelError, TypeMismatchError, UnstableKeyError
from firesteel.graph.stream_graph import StreamEdge
from firesteel.state.key_groups import KeyRouter
from firesteel.state.stable_hash import STABLE_KEYS
from firesteel.task.errors import USER_ERRORS, user_function_error
from firesteel.task.input_gate import Receive

# What an expression of a record's fields, constants and arithmetic is made of, in all versions of Python.
_PLAIN_INSTRUCTIONS = (
    "BINARY_",
    "CACHE",
    "LOAD_CONST",
    "LOAD_FAST",
    "LOAD_SMALL_INT",
    "NOP",
    "RESUME",
    "RETURN_CONST",
    "RETURN_VALUE",
)


def key_function(edge: StreamEdge) -> Callable[[Any], Any]:
    selector = edge.partitioning.key_selector
    assert selector is not None
    return selector


def keys_of(values: list[Any], select: Callable[[Any], Any], operator: str) -> list[Any]:
    iterator = iter(values)
    try:
        return [select(value) for value in iterator]
    except USER_ERRORS as error:
        raise user_function_error(error, operator, select, values, iterator) from error


def records_tell_keys(edge: StreamEdge) -> bool:
    """Whether a record has the same whole number as its key, however often and wherever one asks.

    ``lambda order: order[0]`` and ``lambda n: n % 1000`` name nothing but the record. A function that
    calls something, or takes something apart, might answer otherwise the next time.
    """
    select = edge.partitioning.key_selector
    if not isinstance(select, FunctionType) or _declared_type(edge) is not None:
        return False
    code = select.__code__
    if code.co_argcount != 1 or code.co_kwonlyargcount:
        return False
    return all(
        instruction.opname.startswith(_PLAIN_INSTRUCTIONS)
        for instruction in dis.get_instructions(select)
    )


def with_keys(receive: Receive, edge: StreamEdge, operator: str) -> Receive:
    """Selects the keys once more where none came along, as Flink does."""
    select = key_function(edge)

    def receive_with_keys(
        values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        if keys is None:
            keys = keys_of(values, select, operator)
        receive(values, keys, timestamps)

    return receive_with_keys


def key_converter(edge: StreamEdge, operator: str) -> Callable[[list[Any]], list[Any]] | None:
    """Checks and converts the keys of a batch; None where the program declares no type for them."""
    key_type = _declared_type(edge)
    if key_type is None:
        return None
    convert_batch = key_type.convert_batch

    def convert(keys: list[Any]) -> list[Any]:
        try:
            # In PyFlink a key is the field of a row, which may be None.
            converted: list[Any] = convert_batch(keys, nullable=True)
        except TypeMismatchError as error:
            error.operator = operator
            error.reason = f"{error.reason} It is a key, and this is the key_type of key_by."
            raise
        return converted

    return convert


def _declared_type(edge: StreamEdge) -> TypeInformation | None:
    key_type = edge.partitioning.key_type
    return None if key_type is None or key_type.is_pickled else key_type


def bad_key_error(
    router: KeyRouter,
    operator: str,
    select: Callable[[Any], Any],
    values: list[Any],
    keys: list[Any],
) -> FiresteelError:
    """One of the keys has no subtask: which one, and why."""
    for value, key in zip(values, keys, strict=True):
        reason = _refusal(router, key)
        if reason is not None:
            return user_function_error(
                UnstableKeyError(key, reason), operator, select, [value], None
            )
    raise AssertionError("one of them was refused")


def _refusal(router: KeyRouter, key: Any) -> str | None:
    try:
        router.targets([key])
    except UnstableKeyError as error:
        return error.reason
    except TypeError as error:
        # Unhashable.
        return f"{error}; use {STABLE_KEYS}"
    return None
