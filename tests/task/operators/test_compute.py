import pyarrow as pa
import pytest

from firesteel.common import Row, Types
from firesteel.common.columns import ColumnLayout
from firesteel.datastream import col, lit
from firesteel.errors import InvalidProgramError, TypeMismatchError, UserFunctionError
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.record_batch import RecordBatch
from firesteel.testing import JobHarness, OperatorHarness

BID = Types.ROW_NAMED(["user", "price"], [Types.STRING(), Types.LONG()])
BIDS = [Row(user="ann", price=10), Row(user=None, price=25)]
PASS_ON = lambda batch: batch  # noqa: E731


def by_rows(build, values, type_info=BID):
    return collected(lambda env: build(env.from_collection(values, type_info)))


def by_columns(build, values, type_info=BID):
    return collected(lambda env: build(env.from_collection(values, type_info).map_batches(PASS_ON)))


def collected(program):
    harness = JobHarness(program)
    harness.run()
    return harness.collected


both_ways = pytest.mark.parametrize("collect", [by_rows, by_columns])


@both_ways
def test_fields_become_a_row(collect):
    def build(s):
        return s.select(col("price"), (col("price") / 4).alias("part"), lit("x").alias("text"))

    rows = collect(build, BIDS)
    assert rows == [Row(price=10, part=2.5, text="x"), Row(price=25, part=6.25, text="x")]


@both_ways
def test_fields_may_be_none(collect):
    assert collect(lambda s: s.select(col("user")), BIDS) == [Row(user="ann"), Row(user=None)]


@both_ways
def test_one_value(collect):
    assert collect(lambda s: s.map(col("price") % 7), BIDS) == [3, 4]


@both_ways
def test_a_value_that_is_none_is_an_error_that_says_what_to_do(collect):
    with pytest.raises(TypeMismatchError, match=r"col\('user'\) is None.*use fill_null") as caught:
        collect(lambda s: s.map(col("user")).name("users"), BIDS)
    assert caught.value.operator == "users"


@both_ways
def test_a_failure_names_the_record(collect):
    with pytest.raises(UserFunctionError, match="ZeroDivisionError") as caught:
        collect(lambda s: s.map(5 // (col("price") - 25)).name("divide"), BIDS)
    assert caught.value.operator == "divide"
    assert "25" in str(caught.value.record)


@both_ways
def test_what_arrow_cannot_compute_is_computed_record_by_record(collect):
    # Arrow divides before it finds the remainder, and the quotient has 65 bits.
    least = [(-(2**63), -1)]
    pair = Types.TUPLE([Types.LONG(), Types.LONG()])
    assert collect(lambda s: s.map(col("f0") % col("f1")), least, pair) == [0]


def test_columns_stay_columns_with_their_timestamps():
    with OperatorHarness.of(lambda s: s.select(col("price")), input_types=[BID]) as harness:
        harness.process_elements(BIDS, [7, 3])
        assert harness.output_with_timestamps == [(Row(price=10), 7), (Row(price=25), 3)]
    found: list[RecordBatch] = []
    layout = ColumnLayout(BID)
    with OperatorHarness.of(lambda s: s.map(col("price") + 1), input_types=[BID]) as harness:
        operator = harness._subtask.operators[harness._node.id]
        operator.output.emit = found.append
        operator.process(ColumnBatch(layout.columns_of(BIDS), layout, [7, 3]))
    (batch,) = found
    assert isinstance(batch, ColumnBatch)
    assert batch.columns.column(0) == pa.array([11, 26])
    assert (batch.values, batch.timestamps) == ([11, 26], [7, 3])


def test_programs_that_cannot_run_are_refused():
    def refused(build, message, type_info=BID):
        with pytest.raises(InvalidProgramError, match=message):
            OperatorHarness.of(build, input_types=[type_info])

    refused(lambda s: s.select(col("name")), "the record has the fields user, price")
    refused(lambda s: s.select(col("price") + 1), "has no name")
    refused(lambda s: s.select(col("price"), col(1)), "two fields have the name 'price'")
    refused(lambda s: s.select(), "at least one expression")
    refused(lambda s: s.select("price"), r'Write col\("name"\)')
    refused(lambda s: s.map(col("price"), Types.STRING()), "is of the type Long, not String")
    refused(lambda s: s.map(col("value")), "no declared type", Types.PICKLED_BYTE_ARRAY())
