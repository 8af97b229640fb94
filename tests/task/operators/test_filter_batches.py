import pyarrow as pa
import pyarrow.compute as pc
import pytest

from firesteel.common import Row, RowKind, Types
from firesteel.errors import UserFunctionError
from firesteel.testing import OperatorHarness

NUMBER = Types.LONG()
ROW = Types.ROW_NAMED(["n"], [Types.LONG()])


def harness_of(function, input_type=NUMBER):
    return OperatorHarness.of(
        lambda s: s.filter_batches(function).name("some"), input_types=[input_type]
    )


def odd(batch):
    return pc.equal(pc.bit_wise_and(batch.column(0), 1), 1)


@pytest.mark.parametrize(
    "mask_of",
    [
        odd,
        lambda batch: odd(batch).to_pylist(),
        lambda batch: pa.chunked_array([odd(batch)]),
        lambda batch: pa.table({"mask": odd(batch)}),
    ],
)
def test_what_is_true_stays(mask_of):
    with harness_of(mask_of) as harness:
        harness.process_elements(range(6))
        harness.process_elements([1, 3])
        harness.process_elements([2, 4])
        assert harness.output == [1, 3, 5, 1, 3]


def test_a_null_counts_as_false():
    with harness_of(lambda batch: pc.greater(batch.column("n"), 1), ROW) as harness:
        harness.process_elements([Row(n=1), Row(n=None), Row(n=2)])
        assert harness.output == [Row(n=2)]


def test_timestamps_and_kinds_stay_with_their_records():
    rows = [Row(n=1), Row(n=2), Row(n=3)]
    for row, kind in zip(rows, RowKind, strict=False):
        row.set_row_kind(kind)
    with harness_of(odd, ROW) as harness:
        harness.process_elements(rows, [10, 20, 30])
        assert harness.output_with_timestamps == [(rows[0], 10), (rows[2], 30)]
        kinds = [row.get_row_kind() for row in harness.output]
        assert kinds == [RowKind.INSERT, RowKind.UPDATE_AFTER]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda batch: [True], "each of the 2 records, but it returned 1"),
        (lambda batch: batch.column(0), "booleans, got an array of int64"),
        (lambda batch: [1, 0], "must return booleans"),
        (lambda batch: "yes", "expected a pyarrow.RecordBatch"),
        (lambda batch: None, "got None"),
    ],
)
def test_a_mask_that_does_not_fit_is_an_error(result, message):
    with pytest.raises(UserFunctionError, match=message) as caught:
        harness_of(result).process_elements([1, 2])
    assert caught.value.operator == "some"
