"""The keys that a key selector gives: through their declared type, once more, and what is wrong with a bad one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import FiresteelError, TypeMismatchError, UnstableKeyError
from firesteel.graph.partitioning import ShipStrategy
from firesteel.graph.stream_graph import StreamEdge
from firesteel.state.key_groups import KeyRouter
from firesteel.state.stable_hash import STABLE_KEYS
from firesteel.task.codegen.expressions import defined, expression_of
from firesteel.task.exchange.input_gate import Receive
from firesteel.usercode.failures import USER_ERRORS, user_function_error


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


def key_expression(edge: StreamEdge, record: str) -> str | None:
    """The key in terms of the record, where it is the same however often and wherever one asks.

    ``lambda order: order[0]`` and ``lambda n: n % 1000`` name nothing but the record.
    """
    return None if _declared_type(edge) is not None else expression_of(key_function(edge), record)


@dataclass(frozen=True, slots=True)
class KeySelection:
    """Finds the keys in the records once more where none came along, as Flink does."""

    function: Callable[[Any], Any]
    operator: str
    _keys_of: Callable[[list[Any]], list[Any]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        source = f"def keys_of(values): return [{self.expression('value')} for value in values]"
        keys_of = defined(source, "keys_of", "<keys>", {"__name__": __name__})
        object.__setattr__(self, "_keys_of", keys_of)

    @staticmethod
    def of(edge: StreamEdge, operator: str) -> KeySelection | None:
        """None: the records of this edge do not tell their keys."""
        if edge.partitioning.strategy is not ShipStrategy.HASH:
            return None
        if key_expression(edge, "record") is None:
            return None
        return KeySelection(key_function(edge), operator)

    def expression(self, record: str) -> str:
        expression = expression_of(self.function, record)
        assert expression is not None
        return expression

    def keys_of(self, values: list[Any]) -> list[Any]:
        try:
            return self._keys_of(values)
        except USER_ERRORS:
            # Raises it again, from the line that the user wrote and with the record.
            return keys_of(values, self.function, self.operator)

    def explain(self, error: BaseException, record: Any) -> Exception:
        try:
            keys_of([record], self.function, self.operator)
        except FiresteelError as explained:
            return explained
        return user_function_error(error, self.operator, self.function, [record], None)


def with_keys(receive: Receive, selection: KeySelection) -> Receive:
    def receive_with_keys(
        values: list[Any], keys: list[Any] | None, timestamps: list[int] | None
    ) -> None:
        receive(values, selection.keys_of(values) if keys is None else keys, timestamps)

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
