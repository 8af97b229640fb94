"""Keys that are expressions of records, for ``key_by(col("user"))``."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from firesteel.common.expression_evaluation import evaluation_of, field_place
from firesteel.common.expressions import Column, Expression
from firesteel.common.typeinfo import BasicType, BasicTypeInfo, TypeInformation, Types

__all__ = ["KeyExpressions"]

_EXACT = frozenset(
    {
        BasicType.STRING,
        BasicType.BOOLEAN,
        BasicType.BYTE,
        BasicType.SHORT,
        BasicType.INT,
        BasicType.LONG,
    }
)


class KeyExpressions:
    """Selects the key of a record, or of all records of a batch of columns.

    The key of several expressions is a tuple.

    Args:
        expressions: At least one expression.
        record_type: The type of the records, which consists of primitives.

    Raises:
        InvalidProgramError: The expressions do not fit the type.
    """

    def __init__(self, expressions: tuple[Expression, ...], record_type: TypeInformation) -> None:
        self._expressions = expressions
        self.record_type = record_type
        self._evaluations = [evaluation_of(one, record_type) for one in expressions]
        types = [one.type_info for one in self._evaluations]
        self.key_type = types[0] if len(types) == 1 else Types.TUPLE(types)

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyExpressions, (self._expressions, self.record_type)

    def __repr__(self) -> str:
        texts = list(map(repr, self._expressions))
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def __call__(self, record: Any) -> Any:
        if len(self._evaluations) == 1:
            return self._evaluations[0].of_record(record)
        return tuple([one.of_record(record) for one in self._evaluations])

    @property
    def reason_for_rows(self) -> str | None:
        """The reason for which keys can only be computed record by record, or None.

        Equal floats may look different, and equal keys must be one key.
        """
        for one in self._evaluations:
            assert isinstance(one.type_info, BasicTypeInfo)
            if one.type_info.basic_type not in _EXACT:
                return f"a key of the type {one.type_info}"
        return None

    @property
    def fields(self) -> list[int]:
        """The positions of the fields that are keys as they are."""
        return [
            field_place(one, self.record_type)
            for one in self._expressions
            if isinstance(one, Column)
        ]

    def arrays_of(self, columns: pa.RecordBatch) -> list[pa.Array]:
        """Return the values of each expression.

        Raises:
            pyarrow.ArrowException: Only calls for single records know the keys, or the error.
        """
        arrays = [one.array_of(columns) for one in self._evaluations]
        if len(arrays) > 1 and any(array.null_count for array in arrays):
            raise pa.ArrowInvalid("a tuple has no place for None")
        return arrays

    def keys_of(self, arrays: list[pa.Array]) -> list[Any]:
        """Return the keys, given the values of each expression."""
        if len(arrays) == 1:
            keys: list[Any] = arrays[0].to_pylist()
            return keys
        return list(zip(*[array.to_pylist() for array in arrays], strict=True))

    def arrays_in(self, keys: list[Any]) -> list[pa.Array] | None:
        """Return the values of each expression, given the keys; None if they do not fit."""
        types = [one.type_info.to_arrow_type() for one in self._evaluations]
        try:
            if len(types) == 1:
                return [pa.array(keys, types[0])]
            columns = zip(*keys, strict=True)
            return [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return None
