"""Keys that are expressions: of a record, of columns, and those that only records have."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from firesteel.common import Row, Types
from firesteel.common.columns import ColumnLayout
from firesteel.common.expressions import col
from firesteel.common.key_expressions import KeyExpressions
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import InvalidProgramError
from firesteel.testing import JobHarness

TYPE = Types.ROW_NAMED(["user", "n"], [Types.STRING(), Types.LONG()])
ROWS = [Row(user="ann", n=1), Row(user=None, n=2), Row(user="bob", n=-3)]


def keys_of(keys: KeyExpressions, rows: list[Row]) -> list[object]:
    return keys.keys_of(keys.arrays_of(ColumnLayout(TYPE).columns_of(rows)))


@pytest.mark.parametrize("expression", [col("user"), col("n") % 2, col("n") > 1])
def test_columns_have_the_keys_of_their_records(expression: Any) -> None:
    keys = pickle.loads(pickle.dumps(KeyExpressions((expression,), TYPE)))
    assert keys_of(keys, ROWS) == [keys(row) for row in ROWS]
    assert keys.reason_for_rows is None


def test_several_expressions_make_a_tuple() -> None:
    keys = KeyExpressions((col("n"), col("user")), TYPE)
    assert keys_of(keys, ROWS[:1]) == [keys(ROWS[0])] == [(1, "ann")]
    assert keys.key_type == Types.TUPLE([Types.LONG(), Types.STRING()])
    with pytest.raises(pa.ArrowInvalid):
        keys.arrays_of(ColumnLayout(TYPE).columns_of(ROWS))


def test_floats_are_keys_of_records_only() -> None:
    assert KeyExpressions((col("n") / 2,), TYPE).reason_for_rows == "a key of the type Double"


def test_rows_have_keys_too() -> None:
    rows = [Row("ann", 1), Row(None, 2), Row("ann", 3)]
    harness = JobHarness(lambda env: env.from_collection(rows, TYPE).key_by(col("user")).sum("n"))
    harness.run()
    assert [tuple(row) for row in harness.collected] == [("ann", 1), (None, 2), ("ann", 4)]


def test_a_program_with_wrong_keys_is_refused() -> None:
    stream = StreamExecutionEnvironment().from_collection(ROWS, TYPE)
    with pytest.raises(InvalidProgramError, match=r"has the fields user, n"):
        stream.key_by(col("nobody"))
    with pytest.raises(InvalidProgramError, match=r"is of the type String, not Long"):
        stream.key_by(col("user"), Types.LONG())
    with pytest.raises(InvalidProgramError, match=r'Write col\("name"\)'):
        stream.key_by(("user",))  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InvalidProgramError, match="at least one"):
        stream.key_by(())
