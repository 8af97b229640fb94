"""Evaluation of expressions: their types, and their values for columns and for a record.

Each operation has two forms, a kernel of Arrow for columns and a function for a record. Where
Arrow differs from Python, or fails, the function for a record decides: a kernel raises an error,
and ``values_of`` then computes the batch record by record.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from firesteel.common.columns import DECLARE_PRIMITIVES, fields_of, reason_for_rows
from firesteel.common.expressions import Alias, Call, Column, Expression, Literal
from firesteel.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from firesteel.common.types import values_of
from firesteel.errors import InvalidProgramError

__all__ = ["Evaluation", "evaluation_of", "field_place", "name_of"]

OfColumns = Callable[[pa.RecordBatch], Any]
OfRecord = Callable[[Any], Any]
Kernel = Callable[..., Any]

_INTEGERS = (BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG)
_FLOATS = (BasicType.FLOAT, BasicType.DOUBLE)
_LONG, _DOUBLE, _STRING, _BOOLEAN = (
    Types.LONG(),
    Types.DOUBLE(),
    Types.STRING(),
    Types.BOOLEAN(),
)
_LITERAL_TYPES = {int: _LONG, float: _DOUBLE, str: _STRING, bool: _BOOLEAN}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An expression over records of a type.

    Args:
        type_info: The type of the values.
        of_columns: Computes the values for columns, as an array or as one scalar for all.
        of_record: Computes the value for a record.
    """

    type_info: TypeInformation
    of_columns: OfColumns
    of_record: OfRecord

    def array_of(self, columns: pa.RecordBatch) -> pa.Array:
        """Return the values of all records.

        Raises:
            pyarrow.ArrowException: Only ``of_record`` knows the values, or the error.
        """
        found = self.of_columns(columns)
        if isinstance(found, pa.Scalar):
            return pa.repeat(found, columns.num_rows)
        return found


def evaluation_of(expression: Expression, record_type: TypeInformation) -> Evaluation:
    """Return the evaluation of an expression over records of a type of primitives.

    Raises:
        InvalidProgramError: A field does not exist, or an operation does not fit its operands.
    """
    reason = reason_for_rows(record_type)
    if reason is not None:
        raise InvalidProgramError(
            f"{expression!r} needs the types of fields, but the stream has {reason}. "
            f"{DECLARE_PRIMITIVES}"
        )
    return _evaluation(expression, record_type)


def name_of(expression: Expression, record_type: TypeInformation) -> str:
    """Return the name of a field of ``select``.

    Raises:
        InvalidProgramError: The expression has no name.
    """
    if isinstance(expression, Alias):
        return expression.name
    if isinstance(expression, Column):
        return _field(expression, record_type)[1]
    raise InvalidProgramError(f"{expression!r} has no name. Give it one with alias().")


def field_place(column: Column, record_type: TypeInformation) -> int:
    """Return the position of a field of a record.

    Raises:
        InvalidProgramError: The field does not exist.
    """
    return _field(column, record_type)[0]


def _evaluation(expression: Expression, record_type: TypeInformation) -> Evaluation:
    match expression:
        case Alias():
            return _evaluation(expression.operand, record_type)
        case Column():
            return _of_column(expression, record_type)
        case Literal():
            return _of_literal(expression.value)
        case Call():
            operands = [_evaluation(one, record_type) for one in expression.operands]
            try:
                return _OPERATIONS[expression.name](expression, operands)
            except _UnfitError as error:
                raise InvalidProgramError(f"{expression!r}: {error}") from None
    raise InvalidProgramError(f"{expression!r} is no expression of col() and lit()")


class _UnfitError(Exception):
    """The operands do not fit the operation."""


# -- fields and constants ----------------------------------------------------------------------


def _field(column: Column, record_type: TypeInformation) -> tuple[int, str, TypeInformation]:
    """Return the position, the name and the type of a field."""
    fields = fields_of(record_type)
    names = [name for name, _ in fields]
    field = column.field
    if isinstance(field, str) and field in names:
        place = names.index(field)
    elif isinstance(field, int) and -len(names) <= field < len(names):
        place = field % len(names)
    else:
        raise InvalidProgramError(f"{column!r}: the record has the fields {', '.join(names)}")
    return place, *fields[place]


def _of_column(column: Column, record_type: TypeInformation) -> Evaluation:
    place, _, type_info = _field(column, record_type)

    def of_columns(columns: pa.RecordBatch) -> Any:
        return columns.column(place)

    of_record: OfRecord
    if isinstance(record_type, RowTypeInfo):

        def of_record(record: Any) -> Any:
            return values_of(record)[place]

    elif isinstance(record_type, TupleTypeInfo):
        of_record = operator.itemgetter(place)
    else:

        def of_record(record: Any) -> Any:
            return record

    return Evaluation(type_info, of_columns, of_record)


def _of_literal(value: Any) -> Evaluation:
    type_info = _LITERAL_TYPES[type(value)]
    scalar = pa.scalar(value, type_info.to_arrow_type())
    return Evaluation(type_info, lambda _: scalar, lambda _: value)


# -- operations --------------------------------------------------------------------------------


def _basic(operand: Evaluation) -> BasicType:
    assert isinstance(operand.type_info, BasicTypeInfo)
    return operand.type_info.basic_type


def _is_integer(operand: Evaluation) -> bool:
    return _basic(operand) in _INTEGERS


def _is_number(operand: Evaluation) -> bool:
    return _basic(operand) in _INTEGERS or _basic(operand) in _FLOATS


def _require(operands: list[Evaluation], accepts: Callable[[Evaluation], bool], what: str) -> None:
    for operand in operands:
        if not accepts(operand):
            raise _UnfitError(f"expected {what}, got {operand.type_info}")


def _as_long(operand: Evaluation) -> Evaluation:
    """Widen integers to 64 bits, because Arrow computes with the width of its operands."""
    of_columns = operand.of_columns
    if _basic(operand) is BasicType.LONG:
        return operand
    return Evaluation(
        _LONG, lambda columns: of_columns(columns).cast(pa.int64()), operand.of_record
    )


def _as_double(operand: Evaluation) -> Evaluation:
    of_columns, of_record = operand.of_columns, operand.of_record
    if _basic(operand) is BasicType.DOUBLE:
        return operand
    if _basic(operand) is BasicType.FLOAT:
        return Evaluation(
            _DOUBLE, lambda columns: of_columns(columns).cast(pa.float64()), of_record
        )

    def as_double(record: Any) -> Any:
        value = of_record(record)
        return None if value is None else float(value)

    def as_doubles(columns: pa.RecordBatch) -> Any:
        # Large integers are rounded to the next float, as in Python.
        return of_columns(columns).cast(pa.float64(), safe=False)

    return Evaluation(_DOUBLE, as_doubles, as_double)


def _call(
    type_info: TypeInformation, kernel: Kernel, function: Callable[..., Any], *operands: Evaluation
) -> Evaluation:
    """Return an operation whose result is None if an operand is None."""
    if len(operands) == 1:
        (one,) = operands
        columns_of_one, record_of_one = one.of_columns, one.of_record

        def of_one(record: Any) -> Any:
            value = record_of_one(record)
            return None if value is None else function(value)

        return Evaluation(type_info, lambda columns: kernel(columns_of_one(columns)), of_one)
    left, right = operands
    columns_of_left, columns_of_right = left.of_columns, right.of_columns
    left_of, right_of = left.of_record, right.of_record

    def of_both(record: Any) -> Any:
        first = left_of(record)
        if first is None:
            return None
        second = right_of(record)
        return None if second is None else function(first, second)

    return Evaluation(
        type_info,
        lambda columns: kernel(columns_of_left(columns), columns_of_right(columns)),
        of_both,
    )


def _checked(function: Callable[..., int], symbol: str) -> Callable[..., int]:
    """Return the function with an error for results that no LONG can hold."""

    def checked(*values: int) -> int:
        result = function(*values)
        if not -(2**63) <= result < 2**63:
            raise OverflowError(f"{symbol} of {', '.join(map(str, values))} exceeds a LONG")
        return result

    return checked


def _arithmetic(kernel: str, function: Callable[..., Any]) -> Any:
    def operation(call: Call, operands: list[Evaluation]) -> Evaluation:
        _require(operands, _is_number, "numbers")
        if all(map(_is_integer, operands)):
            exact = getattr(pc, f"{kernel}_checked")
            return _call(_LONG, exact, _checked(function, call.name), *map(_as_long, operands))
        return _call(_DOUBLE, getattr(pc, kernel), function, *map(_as_double, operands))

    return operation


def _divide(_: Call, operands: list[Evaluation]) -> Evaluation:
    _require(operands, _is_number, "numbers")
    return _call(_DOUBLE, pc.divide_checked, operator.truediv, *map(_as_double, operands))


def _floor_divided(left: Any, right: Any) -> tuple[Any, Any]:
    """Return the quotient and the remainder, rounded down. Arrow rounds to zero."""
    quotient = pc.divide_checked(left, right)
    rest = pc.subtract(left, pc.multiply(quotient, right))
    zero = pa.scalar(0, pa.int64())
    is_other_sign = pc.less(pc.bit_wise_xor(rest, right), zero)
    wrong = pc.and_(pc.not_equal(rest, zero), is_other_sign)
    one = pa.scalar(1, pa.int64())
    return (
        pc.if_else(wrong, pc.subtract(quotient, one), quotient),
        pc.if_else(wrong, pc.add(rest, right), rest),
    )


def _whole_division(place: int, function: Callable[..., Any]) -> Any:
    def kernel(left: Any, right: Any) -> Any:
        return _floor_divided(left, right)[place]

    def operation(call: Call, operands: list[Evaluation]) -> Evaluation:
        _require(operands, _is_integer, "integers")
        checked = _checked(function, call.name)
        return _call(_LONG, kernel, checked, *map(_as_long, operands))

    return operation


def _comparison(kernel: str, function: Callable[..., Any]) -> Any:
    def operation(_: Call, operands: list[Evaluation]) -> Evaluation:
        left, right = operands
        if _is_number(left) and _is_number(right):
            both = all(map(_is_integer, operands))
            left, right = map(_as_long if both else _as_double, operands)
        elif left.type_info != right.type_info:
            raise _UnfitError(f"cannot compare {left.type_info} with {right.type_info}")
        return _call(_BOOLEAN, getattr(pc, kernel), function, left, right)

    return operation


def _kleene(kernel: str, decisive: bool) -> Any:
    """``&`` or ``|``. The decisive value decides alone."""

    def operation(_: Call, operands: list[Evaluation]) -> Evaluation:
        _require(operands, lambda one: _basic(one) is BasicType.BOOLEAN, "booleans")
        left, right = operands
        left_of, right_of = left.of_record, right.of_record

        def of_record(record: Any) -> Any:
            first = left_of(record)
            if first is decisive:
                return decisive
            second = right_of(record)
            if second is decisive:
                return decisive
            return None if first is None or second is None else not decisive

        compute = getattr(pc, kernel)
        return Evaluation(
            _BOOLEAN,
            lambda columns: compute(left.of_columns(columns), right.of_columns(columns)),
            of_record,
        )

    return operation


def _invert(_: Call, operands: list[Evaluation]) -> Evaluation:
    _require(operands, lambda one: _basic(one) is BasicType.BOOLEAN, "a boolean")
    return _call(_BOOLEAN, pc.invert, operator.not_, *operands)


def _is_null(_: Call, operands: list[Evaluation]) -> Evaluation:
    (one,) = operands
    return Evaluation(
        _BOOLEAN,
        lambda columns: pc.is_null(one.of_columns(columns)),
        lambda record: one.of_record(record) is None,
    )


def _is_not_null(_: Call, operands: list[Evaluation]) -> Evaluation:
    (one,) = operands
    return Evaluation(
        _BOOLEAN,
        lambda columns: pc.is_valid(one.of_columns(columns)),
        lambda record: one.of_record(record) is not None,
    )


def _fill_null(_: Call, operands: list[Evaluation]) -> Evaluation:
    value, other = operands
    if all(map(_is_integer, operands)):
        value, other = map(_as_long, operands)
    elif all(map(_is_number, operands)):
        value, other = map(_as_double, operands)
    elif value.type_info != other.type_info:
        raise _UnfitError(f"a {value.type_info} cannot become a {other.type_info}")
    value_of, other_of = value.of_record, other.of_record

    def of_record(record: Any) -> Any:
        found = value_of(record)
        return other_of(record) if found is None else found

    return Evaluation(
        value.type_info,
        lambda columns: pc.coalesce(value.of_columns(columns), other.of_columns(columns)),
        of_record,
    )


def _is_in(call: Call, operands: list[Evaluation]) -> Evaluation:
    value = operands[0]
    constants = [one.value for one in call.operands[1:] if isinstance(one, Literal)]
    if _is_integer(value):
        value = _as_long(value)
    elif _basic(value) not in (BasicType.STRING, BasicType.BOOLEAN):
        raise _UnfitError(f"expected an integer, a string or a boolean, got {value.type_info}")
    for one in operands[1:]:
        if one.type_info != value.type_info:
            raise _UnfitError(f"expected constants of type {value.type_info}")
    allowed, members = pa.array(constants, value.type_info.to_arrow_type()), frozenset(constants)

    def kernel(array: Any) -> Any:
        found = pc.is_in(array, value_set=allowed)
        return pc.if_else(pc.is_valid(array), found, pa.scalar(None, pa.bool_()))

    return _call(_BOOLEAN, kernel, members.__contains__, value)


def _text_condition(kernel: str, function: Callable[[str, str], bool]) -> Any:
    compute = getattr(pc, kernel)

    def operation(call: Call, operands: list[Evaluation]) -> Evaluation:
        _require(operands, lambda one: _basic(one) is BasicType.STRING, "strings")
        value, text = operands[0], call.operands[1]
        assert isinstance(text, Literal)
        pattern = text.value
        return _call(
            _BOOLEAN,
            lambda array: compute(array, pattern=pattern),
            lambda found: function(found, pattern),
            value,
        )

    return operation


def _length(_: Call, operands: list[Evaluation]) -> Evaluation:
    _require(operands, lambda one: _basic(one) is BasicType.STRING, "a string")
    return _call(_LONG, lambda array: pc.utf8_length(array).cast(pa.int64()), len, *operands)


_OPERATIONS: dict[str, Callable[[Call, list[Evaluation]], Evaluation]] = {
    "+": _arithmetic("add", operator.add),
    "-": _arithmetic("subtract", operator.sub),
    "*": _arithmetic("multiply", operator.mul),
    "negate": _arithmetic("negate", operator.neg),
    "abs": _arithmetic("abs", abs),
    "/": _divide,
    "//": _whole_division(0, operator.floordiv),
    "%": _whole_division(1, operator.mod),
    "==": _comparison("equal", operator.eq),
    "!=": _comparison("not_equal", operator.ne),
    "<": _comparison("less", operator.lt),
    "<=": _comparison("less_equal", operator.le),
    ">": _comparison("greater", operator.gt),
    ">=": _comparison("greater_equal", operator.ge),
    "&": _kleene("and_kleene", decisive=False),
    "|": _kleene("or_kleene", decisive=True),
    "~": _invert,
    "is_null": _is_null,
    "is_not_null": _is_not_null,
    "fill_null": _fill_null,
    "is_in": _is_in,
    "starts_with": _text_condition("starts_with", str.startswith),
    "ends_with": _text_condition("ends_with", str.endswith),
    "contains": _text_condition("match_substring", str.__contains__),
    "length": _length,
}
