"""Keys of records: their selection from a record, their declared type, and errors about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from firesteel.common.key_expressions import KeyExpressions
from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import FiresteelError, TypeMismatchError, UnstableKeyError
from firesteel.graph.partitioning import ShipStrategy
from firesteel.graph.stream_graph import StreamEdge
from firesteel.state.key_groups import KeyRouter
from firesteel.state.stable_hash import FOLDED_INTS, STABLE_KEYS
from firesteel.state.value_keys import hashable_key
from firesteel.task.codegen.expressions import expression_of
from firesteel.task.codegen.key_loops import KeySelection
from firesteel.task.column_batch import ColumnKeys
from firesteel.task.column_groups import Integers, groups_of
from firesteel.usercode.failures import user_function_error

if TYPE_CHECKING:
    import numpy as np
else:
    from firesteel.common import numpy_on_demand as np


def key_function(edge: StreamEdge) -> Callable[[Any], Any]:
    selector = edge.partitioning.key_selector
    assert selector is not None
    return selector


def key_expression(edge: StreamEdge) -> str | None:
    """Return the key as an expression of ``record``, if it is the same whenever it is computed.

    ``lambda order: order[0]`` and ``lambda n: n % 1000`` name nothing but the record. A declared key
    type has no expression, because it may convert the key.
    """
    return None if _declared_type(edge) is not None else expression_of(key_function(edge), "record")


def key_selection(edge: StreamEdge, operator: str) -> KeySelection | ColumnKeys | None:
    """Return a way to compute the keys of the records of this edge, or None if they bring their keys.

    Rows bring keys that are expressions of columns, and columns do not.
    """
    selector = edge.partitioning.key_selector
    if edge.partitioning.strategy is ShipStrategy.HASH and isinstance(selector, KeyExpressions):
        return ColumnKeys(selector, operator)
    if edge.partitioning.strategy is not ShipStrategy.HASH or key_expression(edge) is None:
        return None
    return KeySelection(key_function(edge), operator)


def key_converter(edge: StreamEdge, operator: str) -> Callable[[list[Any]], list[Any]] | None:
    """Return a function that checks and converts the keys of a batch; None if no type is declared."""
    key_type = _declared_type(edge)
    if key_type is None:
        return None
    convert_batch = key_type.convert_batch

    def convert(keys: list[Any]) -> list[Any]:
        try:
            # In PyFlink a key is a field of a row, so it may be None.
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


def route_keys(
    router: KeyRouter,
    operator: str,
    select: Callable[[Any], Any],
    values: list[Any],
    keys: list[Any],
) -> tuple[list[Any], list[int]]:
    """Return the keys and their subtasks. Lists and other keys without a hash are replaced."""
    try:
        return keys, router.targets(keys)
    except TypeError:
        pass
    try:
        keys = list(map(hashable_key, keys))
        return keys, router.targets(keys)
    except TypeError as error:
        raise _bad_key(router, operator, select, values, keys) from error


def _bad_key(
    router: KeyRouter,
    operator: str,
    select: Callable[[Any], Any],
    values: list[Any],
    keys: list[Any],
) -> FiresteelError:
    """Return the error for the first of the keys that has no stable hash."""
    for value, key in zip(values, keys, strict=True):
        reason = _refusal(router, key)
        if reason is not None:
            return user_function_error(
                UnstableKeyError(key, reason), operator, select, [value], None
            )
    raise AssertionError("the router refused one of the keys")


def _refusal(router: KeyRouter, key: Any) -> str | None:
    try:
        router.targets([hashable_key(key)])
    except UnstableKeyError as error:
        return error.reason
    except TypeError as error:
        # The key cannot be hashed at all.
        return f"{error}; use {STABLE_KEYS}"
    return None


def column_targets(
    router: KeyRouter, expressions: KeyExpressions, columns: pa.RecordBatch
) -> Integers:
    """Return the subtask of each record, which is that of its key as a Python object.

    Raises:
        pyarrow.ArrowException: Only calls for single records know the keys, or the error.
    """
    arrays = expressions.arrays_of(columns)
    first = arrays[0]
    if len(arrays) == 1 and pa.types.is_integer(first.type) and not first.null_count:
        folded = np.mod(first.to_numpy().astype(np.int64), FOLDED_INTS)
        table: Integers = np.array(router.small_ints, np.int64)
        targets: Integers = table[folded]
        return targets
    groups = groups_of(arrays)
    places = pa.array(groups.first)
    of_groups = router.targets(expressions.keys_of([array.take(places) for array in arrays]))
    return np.take(np.array(of_groups, np.int64), groups.numbers)
