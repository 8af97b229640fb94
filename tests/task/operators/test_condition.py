import pytest

from firesteel.common import Row, Types
from firesteel.common.columns import ColumnLayout
from firesteel.datastream import col
from firesteel.errors import InvalidProgramError, UserFunctionError
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.record_batch import RecordBatch
from firesteel.testing import OperatorHarness

BID = Types.ROW_NAMED(["user", "price"], [Types.STRING(), Types.LONG()])
LAYOUT = ColumnLayout(BID)


class ByRows:
    def __init__(self, condition):
        self.harness = OperatorHarness.of(
            lambda s: s.filter(condition).name("some"), input_types=[BID]
        )

    def kept(self, rows, stamps=None):
        self.harness.process_elements(rows, stamps)
        found = self.harness.output_with_timestamps
        return found if stamps else [row for row, _ in found]


class ByColumns(ByRows):
    def kept(self, rows, stamps=None):
        operator = self.harness._subtask.operators[self.harness._node.id]
        batches: list[RecordBatch] = []
        self.harness.open()
        operator.output.emit = batches.append
        operator.process(ColumnBatch(LAYOUT.columns_of(rows), LAYOUT, stamps))
        assert all(isinstance(batch, ColumnBatch) for batch in batches)
        values = [value for batch in batches for value in batch.values]
        if stamps is None:
            return values
        return list(
            zip(
                values,
                [stamp for batch in batches for stamp in batch.timestamps or ()],
                strict=True,
            )
        )


both_ways = pytest.mark.parametrize("way", [ByRows, ByColumns])
ANN, BOB, NONE = Row(user="ann", price=10), Row(user="bob", price=25), Row(user=None, price=None)


@both_ways
def test_what_is_true_stays(way):
    assert way(col("price") > 10).kept([ANN, BOB]) == [BOB]
    assert way(col("price") > 0).kept([ANN, BOB]) == [ANN, BOB]
    assert way(col("price") > 99).kept([ANN, BOB]) == []


@both_ways
def test_none_counts_as_false(way):
    assert way(col("price") < 20).kept([ANN, NONE]) == [ANN]
    assert way(~(col("price") < 20)).kept([ANN, NONE, BOB]) == [BOB]
    assert way(col("price").is_null()).kept([ANN, NONE]) == [NONE]


@both_ways
def test_timestamps_stay_with_their_records(way):
    assert way(col("user") == "bob").kept([ANN, BOB, NONE], [3, 2, 1]) == [(BOB, 2)]


@both_ways
def test_a_failure_names_the_record(way):
    with pytest.raises(UserFunctionError, match="ZeroDivisionError") as caught:
        way(1 / (col("price") - 25) > 0).kept([ANN, BOB])
    assert caught.value.operator == "some"
    assert "25" in str(caught.value.record)


def test_a_value_is_no_condition():
    with pytest.raises(InvalidProgramError, match=r"needs a condition.*is of the type Long"):
        ByRows(col("price"))
