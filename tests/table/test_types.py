from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from firesteel.common import Types
from firesteel.table import DataTypes
from firesteel.table.types import row_type_info


@pytest.mark.parametrize(
    ("data_type", "type_info", "arrow_type"),
    [
        (DataTypes.TINYINT(), Types.BYTE(), pa.int8()),
        (DataTypes.DECIMAL(10, 2), Types.BIG_DEC(), pa.decimal128(10, 2)),
        (DataTypes.VARCHAR(5), Types.STRING(), pa.string()),
        (DataTypes.VARBINARY(5), Types.PRIMITIVE_ARRAY(Types.BYTE()), pa.binary()),
        (DataTypes.TIMESTAMP(3), Types.SQL_TIMESTAMP(), pa.timestamp("ms")),
        (DataTypes.TIMESTAMP_LTZ(6), Types.INSTANT(), pa.timestamp("us", tz="UTC")),
        (DataTypes.ARRAY(DataTypes.INT()), Types.OBJECT_ARRAY(Types.INT()), pa.list_(pa.int32())),
        (
            DataTypes.MAP(DataTypes.STRING(), DataTypes.DATE()),
            Types.MAP(Types.STRING(), Types.SQL_DATE()),
            pa.map_(pa.string(), pa.date32()),
        ),
    ],
    ids=repr,
)
def test_types_of_values_and_columns(data_type, type_info, arrow_type):
    assert data_type.to_type_info() == type_info
    assert data_type.to_arrow_type() == arrow_type
    assert pickle.loads(pickle.dumps(data_type)) == data_type


def test_rows():
    row = DataTypes.ROW(
        [DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("b", DataTypes.DECIMAL(5, 1))]
    )
    type_info, schema = row_type_info(row, "read")
    assert type_info.get_field_names() == ["a", "b"]
    assert schema == pa.schema([("a", pa.int32()), ("b", pa.decimal128(5, 1))])
    assert row_type_info(type_info, "read")[0] is type_info
    with pytest.raises(TypeError, match=r"read needs DataTypes\.ROW"):
        row_type_info(DataTypes.INT(), "read")
