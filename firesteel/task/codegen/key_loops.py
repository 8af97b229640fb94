"""Loops with the expression of a key selector in them, instead of calls of the selector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.state.stable_hash import FOLDED_INTS
from firesteel.task.codegen.compilation import define
from firesteel.task.codegen.expressions import expression_of
from firesteel.usercode.failures import USER_ERRORS, user_function_error

# Adds a record to the buffer of a target.
Add = Callable[[Any], None]


def keys_of(values: list[Any], select: Callable[[Any], Any], operator: str) -> list[Any]:
    """Call the key selector for each record."""
    iterator = iter(values)
    try:
        return [select(value) for value in iterator]
    except USER_ERRORS as error:
        raise user_function_error(error, operator, select, values, iterator) from error


@dataclass(frozen=True, slots=True)
class KeySelection:
    """Computes the keys of records that come without them, as Flink does.

    Args:
        function: The key selector. It must have an expression.
        operator: The name that errors give to the key_by.
    """

    function: Callable[[Any], Any]
    operator: str
    # The key in terms of ``record``.
    expression: str = field(init=False, compare=False)
    _keys_of: Callable[[list[Any]], list[Any]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        expression = expression_of(self.function, "record")
        assert expression is not None
        source = f"def keys_of(values):\n    return [{expression} for record in values]\n"
        object.__setattr__(self, "expression", expression)
        object.__setattr__(self, "_keys_of", define(source, "keys", {}))

    def keys_of(self, values: list[Any]) -> list[Any]:
        try:
            return self._keys_of(values)
        except USER_ERRORS:
            pass
        # The call fails in the user's own line, and the error names the record.
        return keys_of(values, self.function, self.operator)

    def explain(self, error: BaseException, record: Any) -> Exception:
        """Turn the failure of the expression into the failure of the function."""
        try:
            self.function(record)
        except USER_ERRORS as error_of_function:
            # The error of the loop would only repeat it.
            error_of_function.__context__ = None
            error = error_of_function
        return user_function_error(error, self.operator, self.function, [record], None)


@dataclass(frozen=True, slots=True)
class RoutingLoops:
    """Loops that add each record of a batch to the buffer of its key, which is an integer.

    Args:
        small: Takes keys that are indexes into the table of FOLDED_INTS buffers.
        large: Takes any integers, and folds them.
    """

    small: Callable[[list[Any], Sequence[Add]], None]
    large: Callable[[list[Any], Sequence[Add]], None]

    @staticmethod
    def of(expression: str) -> RoutingLoops:
        """Write the loops for keys that are an expression of ``record``."""
        return RoutingLoops(
            _routing_loop(expression), _routing_loop(f"{expression} % {FOLDED_INTS}")
        )


def _routing_loop(index: str) -> Callable[[list[Any], Sequence[Add]], None]:
    source = (
        f"def add_all(values, adds):\n    for record in values:\n        adds[{index}](record)\n"
    )
    return define(source, "key_by", {})
