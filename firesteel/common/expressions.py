"""Expressions over the fields of records, such as ``col("price") * 0.908``.

An expression is a tree, and computes nothing itself. ``firesteel.common.expression_evaluation``
gives it a type, and computes it for columns or for a record, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from firesteel.errors import InvalidProgramError, shorten
from firesteel.stability import public_evolving

__all__ = ["Alias", "Call", "Column", "Expression", "Literal", "col", "lit"]

_LEAST_LONG, _LARGEST_LONG = -(2**63), 2**63 - 1


@public_evolving
class Expression:
    """A value computed from the fields of a record. Not in PyFlink.

    ``col`` and ``lit`` make expressions, and operators combine them:

    - ``+``, ``-``, ``*`` of numbers, and ``-`` and ``abs()`` of one. Integers give a LONG, and an
      OverflowError beyond 64 bits. With a FLOAT or DOUBLE the result is a DOUBLE.
    - ``/`` of numbers, always a DOUBLE; ``//`` and ``%`` of integers, which round down as in Python.
    - ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=`` of two numbers, strings or booleans.
    - ``&``, ``|``, ``~`` of booleans. Put comparisons in parentheses.

    As in SQL, a field that is None makes the result None. Only ``&`` and ``|`` may know better:
    ``False & None`` is False.

    >>> order = Types.ROW_NAMED(["item", "dollars"], [Types.STRING(), Types.DOUBLE()])
    >>> orders = env.from_collection([Row("pen", 2.0), Row("ink", None), Row("cup", 9.5)], order)
    >>> cheap = orders.filter((col("dollars") < 5) | col("dollars").is_null())
    >>> list(cheap.select(col("item"), (col("dollars") / 2).alias("half")).execute_and_collect())
    [Row(item='pen', half=1.0), Row(item='ink', half=None)]
    """

    __hash__ = None  # type: ignore[assignment]  # == makes an expression

    def alias(self, name: str) -> Expression:
        """Return the same value under a name, for ``select``.

        Args:
            name: The name of the field.
        """
        given: object = name
        if not isinstance(given, str) or not given:
            raise InvalidProgramError(f"alias needs a non-empty str, got {shorten(name)}")
        return Alias(self, name)

    def is_null(self) -> Expression:
        """Return True if the value is None, and False otherwise."""
        return Call("is_null", self)

    def is_not_null(self) -> Expression:
        """Return False if the value is None, and True otherwise.

        >>> row = Types.ROW_NAMED(["n"], [Types.LONG()])
        >>> stream = env.from_collection([Row(1), Row(None)], row)
        >>> list(stream.filter(col("n").is_not_null()).execute_and_collect())
        [Row(n=1)]
        """
        return Call("is_not_null", self)

    def fill_null(self, value: Any) -> Expression:
        """Return a different value in place of None.

        Args:
            value: A constant or an expression of the same type.

        >>> row = Types.ROW_NAMED(["n"], [Types.LONG()])
        >>> stream = env.from_collection([Row(1), Row(None)], row)
        >>> list(stream.map(col("n").fill_null(0)).execute_and_collect())
        [1, 0]
        """
        return Call("fill_null", self, as_expression(value))

    def is_in(self, values: Iterable[Any]) -> Expression:
        """Return True if the value is one of some constants: integers, strings or booleans.

        Args:
            values: The constants.

        >>> words = env.from_collection(["a", "b", "c"], Types.STRING())
        >>> list(words.filter(col("value").is_in(["a", "c"])).execute_and_collect())
        ['a', 'c']
        """
        return Call("is_in", self, *map(lit, values))

    def starts_with(self, text: str) -> Expression:
        """Return True if a string begins with a text.

        Args:
            text: The text.

        >>> words = env.from_collection(["spark", "flink"], Types.STRING())
        >>> list(words.filter(col("value").starts_with("sp")).execute_and_collect())
        ['spark']
        """
        return Call("starts_with", self, lit(text))

    def ends_with(self, text: str) -> Expression:
        """Return True if a string ends with a text.

        Args:
            text: The text.

        >>> words = env.from_collection(["spark", "flink"], Types.STRING())
        >>> list(words.filter(col("value").ends_with("k")).execute_and_collect())
        ['spark', 'flink']
        """
        return Call("ends_with", self, lit(text))

    def contains(self, text: str) -> Expression:
        """Return True if a string contains a text.

        Args:
            text: The text.

        >>> words = env.from_collection(["spark", "flink"], Types.STRING())
        >>> list(words.filter(col("value").contains("lin")).execute_and_collect())
        ['flink']
        """
        return Call("contains", self, lit(text))

    def length(self) -> Expression:
        """Return the number of characters of a string, as a LONG.

        >>> words = env.from_collection(["to", "flink"], Types.STRING())
        >>> list(words.map(col("value").length()).execute_and_collect())
        [2, 5]
        """
        return Call("length", self)

    def __bool__(self) -> NoReturn:
        raise InvalidProgramError(
            "an expression is neither true nor false before a record comes: combine conditions "
            "with &, | and ~ instead of and, or and not, and put each one in parentheses"
        )

    def __add__(self, other: Any) -> Expression:
        return Call("+", self, as_expression(other))

    def __radd__(self, other: Any) -> Expression:
        return Call("+", as_expression(other), self)

    def __sub__(self, other: Any) -> Expression:
        return Call("-", self, as_expression(other))

    def __rsub__(self, other: Any) -> Expression:
        return Call("-", as_expression(other), self)

    def __mul__(self, other: Any) -> Expression:
        return Call("*", self, as_expression(other))

    def __rmul__(self, other: Any) -> Expression:
        return Call("*", as_expression(other), self)

    def __truediv__(self, other: Any) -> Expression:
        return Call("/", self, as_expression(other))

    def __rtruediv__(self, other: Any) -> Expression:
        return Call("/", as_expression(other), self)

    def __floordiv__(self, other: Any) -> Expression:
        return Call("//", self, as_expression(other))

    def __rfloordiv__(self, other: Any) -> Expression:
        return Call("//", as_expression(other), self)

    def __mod__(self, other: Any) -> Expression:
        return Call("%", self, as_expression(other))

    def __rmod__(self, other: Any) -> Expression:
        return Call("%", as_expression(other), self)

    def __neg__(self) -> Expression:
        return Call("negate", self)

    def __abs__(self) -> Expression:
        return Call("abs", self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]  # a condition
        return Call("==", self, as_expression(other))

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]  # a condition
        return Call("!=", self, as_expression(other))

    def __lt__(self, other: Any) -> Expression:
        return Call("<", self, as_expression(other))

    def __le__(self, other: Any) -> Expression:
        return Call("<=", self, as_expression(other))

    def __gt__(self, other: Any) -> Expression:
        return Call(">", self, as_expression(other))

    def __ge__(self, other: Any) -> Expression:
        return Call(">=", self, as_expression(other))

    def __and__(self, other: Any) -> Expression:
        return Call("&", self, as_expression(other))

    def __rand__(self, other: Any) -> Expression:
        return Call("&", as_expression(other), self)

    def __or__(self, other: Any) -> Expression:
        return Call("|", self, as_expression(other))

    def __ror__(self, other: Any) -> Expression:
        return Call("|", as_expression(other), self)

    def __invert__(self) -> Expression:
        return Call("~", self)


class Column(Expression):
    """A field of the record, by name or by position."""

    def __init__(self, field: str | int) -> None:
        self.field = field

    def __repr__(self) -> str:
        return f"col({self.field!r})"


class Literal(Expression):
    """A constant."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


class Alias(Expression):
    """A value with a name."""

    def __init__(self, operand: Expression, name: str) -> None:
        self.operand = operand
        self.name = name

    def __repr__(self) -> str:
        return f"{self.operand!r}.alias({self.name!r})"


class Call(Expression):
    """An operation on values."""

    def __init__(self, name: str, *operands: Expression) -> None:
        self.name = name
        self.operands = operands

    def __repr__(self) -> str:
        first, *others = map(repr, self.operands)
        if self.name.isidentifier():
            return f"{first}.{self.name}({', '.join(others)})"
        return f"({first} {self.name} {others[0]})" if others else f"({self.name}{first})"


@public_evolving
def col(field: str | int) -> Expression:
    """Return a field of the record as an expression. Not in PyFlink.

    Args:
        field: The name or the position of a field. A record without fields is the field ``value``,
            and the fields of a tuple are ``f0``, ``f1`` and so on.

    >>> numbers = env.from_collection([1, 2, 3], Types.LONG())
    >>> list(numbers.map(col("value") * 10).execute_and_collect())
    [10, 20, 30]
    """
    given: object = field
    if not isinstance(given, str | int) or isinstance(given, bool):
        raise InvalidProgramError(
            f"col needs the name or the position of a field, got {shorten(field)}"
        )
    return Column(field)


@public_evolving
def lit(value: Any) -> Expression:
    """Return a constant as an expression. Not in PyFlink.

    Operators accept plain constants too. ``lit`` is for a constant that comes alone.

    Args:
        value: A bool, a float, a str, or an int of 64 bits.

    >>> numbers = env.from_collection([1, 2], Types.LONG())
    >>> rows = numbers.select(col("value"), lit("EUR").alias("currency"))
    >>> list(rows.execute_and_collect())
    [Row(value=1, currency='EUR'), Row(value=2, currency='EUR')]
    """
    if type(value) not in (bool, int, float, str):
        raise InvalidProgramError(
            f"an expression can contain a bool, an int, a float or a str, but not {shorten(value)}"
        )
    if type(value) is int and not _LEAST_LONG <= value <= _LARGEST_LONG:
        raise InvalidProgramError(f"{value} has more than 64 bits")
    return Literal(value)


def as_expression(value: Any) -> Expression:
    """Return an expression as it is, and a constant as one."""
    return value if isinstance(value, Expression) else lit(value)
