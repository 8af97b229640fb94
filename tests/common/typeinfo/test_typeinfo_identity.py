"""Equality, hash, text, pickling, Arrow types and internal types of type informations."""

# ruff: noqa: DTZ001  # SQL timestamps have no time zone

import datetime as dt
import pickle

import pyarrow as pa
import pytest

from firesteel.common import Instant, Row, RowKind, Types
from firesteel.common.typeinfo import RowTypeInfo
from firesteel.errors import NotYetSupportedError

T = Types

TYPES = [
    (T.STRING(), "String", pa.string()),
    (T.BYTE(), "Byte", pa.int8()),
    (T.BOOLEAN(), "Boolean", pa.bool_()),
    (T.SHORT(), "Short", pa.int16()),
    (T.INT(), "Integer", pa.int32()),
    (T.LONG(), "Long", pa.int64()),
    (T.FLOAT(), "Float", pa.float32()),
    (T.DOUBLE(), "Double", pa.float64()),
    (T.CHAR(), "Char", pa.string()),
    (T.BIG_INT(), "BigInteger", pa.decimal128(38, 0)),
    (T.BIG_DEC(), "BigDecimal", pa.decimal128(38, 18)),
    (T.INSTANT(), "Instant", pa.timestamp("us", tz="UTC")),
    (T.SQL_DATE(), "DateTypeInfo", pa.date32()),
    (T.SQL_TIME(), "TimeTypeInfo", pa.time64("ns")),
    (T.SQL_TIMESTAMP(), "TimestampTypeInfo", pa.timestamp("us")),
    (T.LIST(T.INT()), "ListTypeInfo<Integer>", pa.list_(pa.int32())),
    (T.PRIMITIVE_ARRAY(T.INT()), "PrimitiveArrayTypeInfo<Integer>", pa.list_(pa.int32())),
    (T.PRIMITIVE_ARRAY(T.BYTE()), "PrimitiveArrayTypeInfo<Byte>", pa.binary()),
    (T.BASIC_ARRAY(T.STRING()), "BasicArrayTypeInfo<String>", pa.list_(pa.string())),
    (T.OBJECT_ARRAY(T.INSTANT()), "ObjectArrayTypeInfo<Instant>", None),
    (T.MAP(T.STRING(), T.INT()), "MapTypeInfo<String, Integer>", pa.map_(pa.string(), pa.int32())),
    (
        T.TUPLE([T.STRING(), T.INT()]),
        "TupleTypeInfo(String, Integer)",
        pa.struct([("f0", pa.string()), ("f1", pa.int32())]),
    ),
    (T.ROW([T.STRING()]), "RowTypeInfo(String)", pa.struct([("f0", pa.string())])),
    (
        T.ROW_NAMED(["a", "b"], [T.LONG(), T.INT()]),
        "RowTypeInfo(a: Long, b: Integer)",
        pa.struct([("a", pa.int64()), ("b", pa.int32())]),
    ),
    (T.PICKLED_BYTE_ARRAY(), "PickledByteArrayTypeInfo", None),
]


@pytest.mark.parametrize(("type_info", "text", "arrow"), TYPES, ids=str)
def test_text_and_arrow_type(type_info, text, arrow):
    assert str(type_info) == text
    if arrow is not None:
        assert type_info.to_arrow_type() == arrow


def test_every_type_equals_only_its_copies():
    infos = [info for info, _, _ in TYPES]
    for position, info in enumerate(infos):
        twin = pickle.loads(pickle.dumps(info))
        assert twin == info
        assert hash(twin) == hash(info)
        assert str(twin) == str(info)
        assert all(info != other for other in infos[position + 1 :])


def test_row_types_are_equal_whatever_their_names_as_in_flink():
    plain, named = T.ROW([T.INT()]), T.ROW_NAMED(["a"], [T.INT()])
    assert plain == named
    assert hash(plain) == hash(named)
    assert not plain.schema_equals(named)
    assert named.schema_equals(T.ROW_NAMED(["a"], [T.INT()]))


def test_row_type_fields():
    info = T.ROW([T.INT(), T.STRING()])
    assert isinstance(info, RowTypeInfo)
    assert info.get_field_names() == ["f0", "f1"]
    assert info.get_field_types() == [T.INT(), T.STRING()]
    named = T.ROW_NAMED(["a", "b"], [T.INT(), T.STRING()])
    assert (named.get_field_index("b"), named.get_field_index("c")) == (1, -1)


def test_untyped_columns_have_no_arrow_type_and_the_error_gives_advice():
    with pytest.raises(NotYetSupportedError, match="output_type"):
        T.LIST(T.PICKLED_BYTE_ARRAY()).to_arrow_type()


@pytest.mark.parametrize(
    ("type_info", "value", "internal"),
    [
        (T.INT(), 1, 1),
        (T.SQL_DATE(), dt.date(1970, 1, 3), 2),
        (T.SQL_DATE(), None, None),
        (T.INSTANT(), Instant(1, 5_000_000), 1_005_000),
        (T.ROW([T.SQL_DATE(), T.INT()]), (dt.date(1970, 1, 2), 5), (0, 1, 5)),
        (
            T.ROW_NAMED(["a", "b"], [T.INT(), T.INT()]),
            Row.of_kind(RowKind.DELETE, b=2, a=1),
            (3, 1, 2),
        ),
        (T.TUPLE([T.SQL_DATE(), T.INT()]), [dt.date(1970, 1, 2), 5], (1, 5)),
    ],
    ids=str,
)
def test_internal_types(type_info, value, internal):
    assert type_info.to_internal_type(value) == internal


def test_types_that_need_conversion():
    assert T.SQL_TIME().need_conversion()
    assert T.ROW([T.INT()]).need_conversion()
    assert not T.STRING().need_conversion()
    assert not T.LIST(T.INT()).need_conversion()


@pytest.mark.parametrize(
    ("type_info", "value"),
    [
        (T.SQL_DATE(), dt.date(2021, 5, 6)),
        (T.SQL_TIME(), dt.time(1, 2, 3, 456789)),
        (T.SQL_TIMESTAMP(), dt.datetime(2021, 5, 6, 7, 8, 9, 123456)),
        (T.INSTANT(), Instant.of_epoch_milli(-12345)),
    ],
    ids=str,
)
def test_internal_values_come_back(type_info, value):
    assert type_info.from_internal_type(type_info.to_internal_type(value)) == value
