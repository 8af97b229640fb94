"""Row and RowKind, with PyFlink's behavior."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from operator import attrgetter
from typing import Any

__all__ = ["Row", "RowKind"]


class RowKind(Enum):
    """The kind of change that a row describes in a changelog.

    >>> print(RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE)
    +I -U +U -D
    """

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _SHORT_KINDS[self.value]


_SHORT_KINDS = ("+I", "-U", "+U", "-D")
_INSERT = RowKind.INSERT


def _create_row(
    fields: Sequence[Any] | None, values: Sequence[Any], row_kind: RowKind | None = None
) -> Row:
    names = None if fields is None else list(fields)
    return new_row(list(values), names, row_kind or _INSERT)


class Row:
    """A fixed-length sequence of values, with optional field names and a row kind.

    Args:
        *args: The values of a row without field names.
        **kwargs: The names and values of a row with field names.

    >>> row = Row(name="Alice", age=11)
    >>> row
    Row(name='Alice', age=11)
    >>> row.name, row["age"], row[0]
    ('Alice', 11, 'Alice')
    >>> Person = Row("name", "age")
    >>> Person("Bob", 12).as_dict()
    {'name': 'Bob', 'age': 12}
    """

    __slots__ = ("_fields", "_row_kind", "_values")

    _fields: list[str] | None
    _row_kind: RowKind
    _values: list[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError("A Row takes either positional or named values, not both.")
        if kwargs:
            self._fields = list(kwargs)
            self._values = list(kwargs.values())
        else:
            self._fields = None
            self._values = list(args)
        self._row_kind = _INSERT

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """Create a row of a kind.

        Args:
            row_kind: The kind.
            *args: The values of a row without field names.
            **kwargs: The names and values of a row with field names.

        >>> Row.of_kind(RowKind.DELETE, name="Alice").get_row_kind()
        <RowKind.DELETE: 3>
        """
        row = Row(*args, **kwargs)
        row._row_kind = row_kind
        return row

    @staticmethod
    def _around(
        values: list[Any], field_names: list[str] | None, row_kind: RowKind = _INSERT
    ) -> Row:
        """Build a row around ``values`` without copying them."""
        row: Row = _new(Row)
        row._values = values
        row._fields = field_names
        row._row_kind = row_kind
        return row

    @staticmethod
    def _around_each(
        value_lists: Iterable[list[Any]],
        field_names: list[str] | None,
        row_kinds: Iterable[RowKind],
    ) -> list[Row]:
        """Build many rows as ``_around`` does. A loop of its own saves a call per row."""
        rows = []
        for values, row_kind in zip(value_lists, row_kinds, strict=False):
            row: Row = _new(Row)
            row._values = values
            row._fields = field_names
            row._row_kind = row_kind
            rows.append(row)
        return rows

    def _copy(self, row_kind: RowKind | None = None) -> Row:
        """Return a row with the same values, of the same kind or of a different one."""
        row: Row = _new(Row)
        row._values = self._values.copy()
        row._fields = self._fields
        row._row_kind = self._row_kind if row_kind is None else row_kind
        return row

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Return the fields as a dict.

        Args:
            recursive: True also converts rows inside fields, lists and dicts.

        Raises:
            TypeError: The row has no field names.

        >>> Row(name="Alice", address=Row(city="Paris")).as_dict(recursive=True)
        {'name': 'Alice', 'address': {'city': 'Paris'}}
        """
        if self._fields is None:
            raise TypeError("A Row without field names cannot become a dict.")
        values = map(_plain, self._values) if recursive else self._values
        return dict(zip(self._fields, values, strict=False))

    def get_row_kind(self) -> RowKind:
        """Return the kind of the row. It is INSERT unless it was set.

        >>> Row(1).get_row_kind()
        <RowKind.INSERT: 0>
        """
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Set the kind of the row.

        Args:
            row_kind: The kind.

        >>> row = Row(1)
        >>> row.set_row_kind(RowKind.UPDATE_AFTER)
        >>> str(row.get_row_kind())
        '+U'
        """
        self._row_kind = row_kind

    def set_field_names(self, field_names: list[str]) -> None:
        """Name the fields of the row.

        Args:
            field_names: A name per field.

        >>> row = Row("Alice", 11)
        >>> row.set_field_names(["name", "age"])
        >>> row
        Row(name='Alice', age=11)
        """
        self._fields = field_names

    def get_fields_by_names(self, names: list[str]) -> list[Any]:
        """Return values in the order of the given names.

        Args:
            names: Names of fields. A row without field names ignores them and returns all values.

        Raises:
            ValueError: The row has no field of a name.

        >>> Row(name="Alice", age=11).get_fields_by_names(["age", "name"])
        [11, 'Alice']
        """
        fields = self._fields
        if fields is None or names == fields:
            return self._values
        missing = [name for name in names if name not in fields]
        if missing:
            raise ValueError(f"The row has no field {', '.join(missing)}; it has {fields}.")
        return [self._values[fields.index(name)] for name in names]

    def __contains__(self, item: object) -> bool:
        return item in (self._values if self._fields is None else self._fields)

    def __call__(self, *args: Any) -> Row:
        """Use this row's values as field names for a new row."""
        if len(args) > len(self._values):
            raise ValueError(f"{self!r} has {len(self)} field names, but got {len(args)} values.")
        return _create_row(self._values, args, self._row_kind)

    def __getitem__(self, item: Any) -> Any:
        try:
            return self._values[item]
        except TypeError:
            return self._values[self._index_of(item)]

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            self._values[key] = value
        except TypeError:
            if isinstance(key, slice):
                raise
            self._values[self._index_of(key)] = value

    def _index_of(self, name: object) -> int:
        if self._fields is None:
            raise KeyError(name)
        # PyFlink raises ValueError for an unknown name, and list.index does the same.
        return self._fields.index(name)  # type: ignore[arg-type]  # any key may be asked for

    def __getattr__(self, item: str) -> Any:
        # Only called when normal lookup fails; pickle and copy probe dunder names before
        # the slots are set.
        if item.startswith("_") or self._fields is None or item not in self._fields:
            raise AttributeError(item)
        return self._values[self._fields.index(item)]

    def __reduce__(self) -> tuple[Any, ...]:
        return _create_row, (self._fields, tuple(self._values), self._row_kind)

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        pairs = zip(self._fields, self._values, strict=False)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in pairs)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or self._row_kind is not other._row_kind:
            return False
        if self._fields == other._fields:
            return self._values == other._values
        if self._fields is None or other._fields is None:
            return False
        # The order of named fields does not matter.
        return sorted(self._fields) == sorted(other._fields) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(tuple(self._values))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


_new = Row.__new__

# For the runtime. As public methods and attributes they would hide fields of the same name.
new_row = Row._around  # noqa: SLF001 - in the module of Row
new_rows = Row._around_each  # noqa: SLF001 - in the module of Row
copy_row = Row._copy  # noqa: SLF001 - in the module of Row
values_of = attrgetter("_values")
field_names_of = attrgetter("_fields")
row_kind_of = attrgetter("_row_kind")


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        return {key: _plain(element) for key, element in value.items()}
    return value
