"""Types of rows and tuples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import pyarrow as pa

from firesteel.common.typeinfo.base import TypeInformation, nested_java_string
from firesteel.common.types import (
    Row,
    RowKind,
    field_names_of,
    new_rows,
    row_kind_of,
    values_of,
)
from firesteel.errors import InvalidProgramError, TypeMismatchError
from firesteel.stability import public_evolving

__all__ = ["RowTypeInfo", "TupleTypeInfo"]


class _FieldsTypeInfo(TypeInformation):
    """Base class of rows and tuples: a fixed number of fields, each with its own type."""

    __slots__ = ("_field_types",)

    _nullable_fields = False

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        self._field_types = list(field_types)

    @property
    def contains_rows(self) -> bool:
        return any(field_type.contains_rows for field_type in self._field_types)

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields.

        >>> Types.TUPLE([Types.STRING(), Types.LONG()]).get_field_types()
        [String, Long]
        """
        return self._field_types

    @public_evolving
    def get_arity(self) -> int:
        """Return the number of fields. Not in PyFlink.

        >>> Types.TUPLE([Types.STRING(), Types.LONG()]).get_arity()
        2
        """
        return len(self._field_types)

    def need_conversion(self) -> bool:
        return True

    def _field_name(self, position: int) -> str:
        return f"f{position}"

    def _convert_columns(
        self, originals: list[Any], records: Sequence[Sequence[Any]]
    ) -> list[Sequence[Any]] | None:
        """Convert field by field. Returns None if no field changed.

        ``records`` holds the field values of ``originals``, all of the correct length.
        """
        changed = False
        columns: list[Sequence[Any]] = []
        for position, field_type in enumerate(self._field_types):
            column = list(map(itemgetter(position), records))
            if not field_type.is_pickled:
                try:
                    converted = field_type.convert_batch(column, self._nullable_fields)
                except TypeMismatchError:
                    self._raise_for_first(originals, records)
                    raise
                changed = changed or converted is not column
                column = converted
            columns.append(column)
        if not changed:
            return None
        return list(zip(*columns, strict=True))

    def _raise_for_first(self, originals: list[Any], records: Sequence[Sequence[Any]]) -> None:
        for original, record in zip(originals, records, strict=True):
            for position, field_type in enumerate(self._field_types):
                try:
                    field_type.convert_batch([record[position]], self._nullable_fields)
                except TypeMismatchError as error:
                    name = self._field_name(position)
                    raise self._mismatch(original, f"field {name}: {error.reason}") from None

    def _check_arity(self, originals: list[Any], records: Sequence[Sequence[Any]]) -> None:
        arity = len(self._field_types)
        if set(map(len, records)) <= {arity}:
            return
        for original, record in zip(originals, records, strict=True):
            if len(record) != arity:
                raise self._mismatch(original, f"expected {arity} fields, got {len(record)}.")

    def _internal_fields(self, values: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(
            field_type.to_internal_type(value) if field_type.need_conversion() else value
            for field_type, value in zip(self._field_types, values, strict=False)
        )

    def from_internal_type(self, obj: Any) -> Any:
        # As in PyFlink, a tuple or list counts as already converted.
        if obj is None or isinstance(obj, tuple | list):
            return obj
        return tuple(
            field_type.from_internal_type(value) if field_type.need_conversion() else value
            for field_type, value in zip(self._field_types, obj, strict=False)
        )

    def _java_fields(self, values: Iterable[Any]) -> list[str]:
        return list(map(nested_java_string, self._field_types, values))

    def to_arrow_type(self) -> pa.DataType:
        return pa.struct(
            [
                (self._field_name(position), field_type.to_arrow_type())
                for position, field_type in enumerate(self._field_types)
            ]
        )

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._field_types == other._field_types

    def __hash__(self) -> int:
        return hash((type(self), *self._field_types))


class TupleTypeInfo(_FieldsTypeInfo):
    """A tuple whose fields are not None. Lists and rows become tuples.

    >>> pairs = Types.TUPLE([Types.STRING(), Types.LONG()])
    >>> pairs.convert_batch([("a", 1), ["b", 2], Row("c", 3)])
    [('a', 1), ('b', 2), ('c', 3)]
    """

    __slots__ = ()

    def to_internal_type(self, obj: Any) -> Any:
        if obj is None:
            return None
        return self._internal_fields(self._as_tuple(obj))

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        tuples = values if kinds == {tuple} else [self._as_tuple(value) for value in values]
        self._check_arity(values, tuples)
        converted = self._convert_columns(values, tuples)
        return tuples if converted is None else converted

    def _as_tuple(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, tuple | list | Row):
            raise self._unexpected(value, "tuple")
        return tuple(value)

    def to_java_string(self, value: Any) -> str:
        return f"({','.join(self._java_fields(value))})"

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(str, self._field_types))})"


class RowTypeInfo(_FieldsTypeInfo):
    """A Row with named fields. Fields may be None, the row may not.

    Values become rows with the field names of the type. Rows with names, dicts and other objects
    are read by name. Tuples and lists are read by position.

    >>> person = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
    >>> person.get_field_names(), person.get_field_index("age")
    (['name', 'age'], 1)
    >>> person.convert_batch([("Alice", 11), {"age": 12, "name": "Bob"}])
    [Row(name='Alice', age=11), Row(name='Bob', age=12)]
    """

    __slots__ = ("_field_names", "_has_names")

    _nullable_fields = True

    def __init__(
        self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None
    ) -> None:
        super().__init__(field_types)
        self._has_names = field_names is not None
        names = list(field_names) if field_names is not None else []
        if field_names is None:
            names = [f"f{position}" for position in range(len(self._field_types))]
        if len(names) != len(self._field_types):
            raise InvalidProgramError(
                "A row type must have as many field names as field types, got "
                f"{len(names)} and {len(self._field_types)}."
            )
        if len(set(names)) != len(names):
            raise InvalidProgramError(f"The field names of a row type must be unique: {names}.")
        self._field_names = names

    @property
    def contains_rows(self) -> bool:
        return True

    def get_field_names(self) -> list[str]:
        """Return the names of the fields."""
        return self._field_names

    @public_evolving
    def get_field_index(self, field_name: str) -> int:
        """Return the position of a field, or -1. Not in PyFlink.

        Args:
            field_name: The name of the field.
        """
        return self._field_names.index(field_name) if field_name in self._field_names else -1

    @public_evolving
    def schema_equals(self, other: object) -> bool:
        """Compare the types and the names of fields. Not in PyFlink.

        As in Flink, ``==`` compares the types only.

        Args:
            other: A type.

        >>> first = Types.ROW_NAMED(["a"], [Types.INT()])
        >>> second = Types.ROW_NAMED(["b"], [Types.INT()])
        >>> first == second, first.schema_equals(second)
        (True, False)
        """
        return (
            isinstance(other, RowTypeInfo)
            and self == other
            and self._field_names == other.get_field_names()
        )

    def _field_name(self, position: int) -> str:
        return self._field_names[position]

    def to_internal_type(self, obj: Any) -> Any:
        if obj is None:
            return None
        kind = obj.get_row_kind() if isinstance(obj, Row) else RowKind.INSERT
        return (kind.value, *self._internal_fields(self._fields_in_order(obj)))

    def _convert(self, values: list[Any], kinds: set[type]) -> list[Any]:
        if kinds == {Row}:
            return self._convert_rows(values)
        records = [self._fields_in_order(value) for value in values]
        self._check_arity(values, records)
        converted = self._convert_columns(values, records)
        row_kinds = [
            row_kind_of(value) if isinstance(value, Row) else RowKind.INSERT for value in values
        ]
        return new_rows(map(list, converted or records), self._field_names, row_kinds)

    def _convert_rows(self, rows: list[Any]) -> list[Any]:
        names = self._field_names
        # Rows of the same origin share a list of names, so few lists have to be compared.
        name_lists = {id(fields): fields for fields in map(field_names_of, rows)}.values()
        has_all_names = all(fields == names for fields in name_lists)
        if has_all_names or all(fields is None or fields == names for fields in name_lists):
            records = list(map(values_of, rows))
        else:
            records = [self._fields_in_order(row) for row in rows]
        self._check_arity(rows, records)
        converted = self._convert_columns(rows, records)
        if converted is None and has_all_names:
            return rows
        # The values are copied, because the user's function may keep its row and change it.
        return new_rows(map(list, converted or records), names, map(row_kind_of, rows))

    def _fields_in_order(self, value: Any) -> list[Any]:
        names = self._field_names
        if isinstance(value, Row):
            fields = field_names_of(value)
            missing = [name for name in names if fields is not None and name not in fields]
            if missing:
                raise self._mismatch(value, f"the row has no field {', '.join(missing)}.")
            return value.get_fields_by_names(names)
        if isinstance(value, tuple | list):
            return list(value)
        attributes = value if isinstance(value, dict) else getattr(value, "__dict__", None)
        if not isinstance(attributes, dict) or (
            attributes is not value and not any(name in attributes for name in names)
        ):
            raise self._unexpected(value, "Row")
        return [attributes.get(name) for name in names]

    def to_java_string(self, value: Any) -> str:
        kind = value.get_row_kind() if isinstance(value, Row) else RowKind.INSERT
        return f"{kind}[{', '.join(self._java_fields(value))}]"

    @public_evolving
    def to_print_string(self, value: Any) -> str:
        """Return the text that ``DataStream.print()`` writes for a row. Not in PyFlink.

        As in PyFlink, fields have Python's text, not Java's.

        Args:
            value: A row.

        >>> person = Types.ROW_NAMED(["name", "adult"], [Types.STRING(), Types.BOOLEAN()])
        >>> row = Row(name="Alice", adult=False)
        >>> person.to_print_string(row), person.to_java_string(row)
        ('+I[Alice,False]', '+I[Alice, false]')
        """
        # PyFlink turns rows into text in Python before it prints them.
        kind = value.get_row_kind() if isinstance(value, Row) else RowKind.INSERT
        return f"{kind}[{','.join(map(str, value))}]"

    def __repr__(self) -> str:
        if not self._has_names:
            return f"RowTypeInfo({', '.join(map(str, self._field_types))})"
        pairs = zip(self._field_names, self._field_types, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}: {field}' for name, field in pairs)})"
