"""Types of the records that collections and DataFrames give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
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


def data_frame_type(schema: Any) -> TypeInformation:
    """Return the type of a DataFrame's rows. pyspark is not imported: its types have names.

    A column without a counterpart holds Python objects.
    """
    return Types.ROW_NAMED(
        [field.name for field in schema.fields],
        [_type_of(field.dataType) for field in schema.fields],
    )


def _type_of(data_type: Any) -> TypeInformation:
    name = data_type.typeName()
    if name == "struct":
        return data_frame_type(data_type)
    if name == "array":
        return Types.LIST(_type_of(data_type.elementType))
    if name == "map":
        return Types.MAP(_type_of(data_type.keyType), _type_of(data_type.valueType))
    return _BY_NAME.get(name.partition("(")[0], Types.PICKLED_BYTE_ARRAY)()


_CHUNK_ELEMENTS = 8192


def fit_elements(elements: Iterable[Any], type_info: TypeInformation) -> Iterable[Any]:
    """Check the elements of a collection and convert them to a type.

    A list that fits already is not copied, and a range stays a range.
    """
    if isinstance(elements, range):
        ends = [elements[0], elements[-1]] if elements else []
        return elements if type_info.convert_batch(ends) is ends else _chunked(elements, type_info)
    if isinstance(elements, list):
        return type_info.convert_batch(elements)
    return _chunked(elements, type_info)


def _chunked(elements: Iterable[Any], type_info: TypeInformation) -> Iterator[Any]:
    iterator = iter(elements)
    while chunk := list(islice(iterator, _CHUNK_ELEMENTS)):
        yield from type_info.convert_batch(chunk)
