"""The type of a stream that comes from a DataFrame, without importing pyspark.

Spark's type objects are asked for their names only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.common.typeinfo import TypeInformation, Types

_BY_NAME: dict[str, Callable[[], TypeInformation]] = {
    "boolean": Types.BOOLEAN,
    "byte": Types.BYTE,
    "short": Types.SHORT,
    "integer": Types.INT,
    "long": Types.LONG,
    "float": Types.FLOAT,
    "double": Types.DOUBLE,
    "string": Types.STRING,
    "char": Types.STRING,
    "varchar": Types.STRING,
    "binary": lambda: Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "decimal": Types.BIG_DEC,
    "date": Types.SQL_DATE,
    "time": Types.SQL_TIME,
    # Its wall time in the zone of the DataFrame's session.
    "timestamp": Types.SQL_TIMESTAMP,
    "timestamp_ntz": Types.SQL_TIMESTAMP,
}


def row_type(schema: Any) -> TypeInformation:
    """A row with the columns' names; a column without a counterpart holds Python objects."""
    return Types.ROW_NAMED(
        [field.name for field in schema.fields],
        [_type_of(field.dataType) for field in schema.fields],
    )


def _type_of(data_type: Any) -> TypeInformation:
    name = data_type.typeName()
    if name == "struct":
        return row_type(data_type)
    if name == "array":
        return Types.LIST(_type_of(data_type.elementType))
    if name == "map":
        return Types.MAP(_type_of(data_type.keyType), _type_of(data_type.valueType))
    return _BY_NAME.get(name.partition("(")[0], Types.PICKLED_BYTE_ARRAY)()
