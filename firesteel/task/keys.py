"""The keys that a key selector gives: through their declared type, and what is wrong with a bad one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.errors import FiresteelError, TypeMismatchError, UnstableKeyError
from firesteel.graph.stream_graph import StreamEdge
from firesteel.state.key_groups import KeyRouter
from firesteel.state.stable_hash import STABLE_KEYS
from firesteel.task.errors import user_function_error


def key_converter(edge: StreamEdge, operator: str) -> Callable[[list[Any]], list[Any]] | None:
    """Checks and converts the keys of a batch; None where the program declares no type for them."""
    key_type = edge.partitioning.key_type
    if key_type is None or key_type.is_pickled:
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
