from array import array

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from firesteel.common import Row, Types
from firesteel.datastream.functions import MapFunction
from firesteel.errors import InvalidProgramError, TypeMismatchError, UserFunctionError
from firesteel.testing import JobHarness, OperatorHarness

PRICE = Types.ROW_NAMED(["item", "euros"], [Types.STRING(), Types.DOUBLE()])


def harness_of(function, output_type=None, input_type=PRICE, **settings):
    return OperatorHarness.of(
        lambda s: s.map_batches(function, output_type), input_types=[input_type], **settings
    )


def doubled(batch):
    return batch.set_column(1, "euros", pc.multiply(batch.column("euros"), 2))


def test_records_become_columns_and_records_again():
    with harness_of(doubled) as harness:
        harness.process_elements([Row("pen", 1.5), Row(None, None)])
        assert harness.output == [Row(item="pen", euros=3.0), Row(item=None, euros=None)]


def test_timestamps_are_carried_through():
    with harness_of(doubled) as harness:
        harness.process_elements([Row("a", 1.0), Row("b", 2.0)], [20, 10])
        assert [stamp for _, stamp in harness.output_with_timestamps] == [20, 10]


def test_watermarks_pass():
    with harness_of(doubled) as harness:
        harness.process_watermark(5)
        assert harness.watermarks == [5]


def test_results_may_have_another_type():
    with harness_of(lambda batch: batch.column("euros"), Types.DOUBLE()) as harness:
        harness.process_elements([Row("a", 1.0), Row("b", 2.0)])
        assert harness.output == [1.0, 2.0]


def test_values_without_fields_are_the_column_value():
    with harness_of(
        lambda batch: pc.add(batch.column("value"), 1), input_type=Types.LONG()
    ) as harness:
        harness.process_elements([1, 2])
        assert harness.output == [2, 3]


def test_a_function_object_lives_from_open_to_close():
    events = []

    class Scale(MapFunction):
        def open(self, runtime_context):
            events.append(runtime_context.get_task_name())

        def map(self, value):
            return pc.multiply(value.column("value"), 10)

        def close(self):
            events.append("close")

    with OperatorHarness.of(
        lambda s: s.map_batches(Scale()).name("scale"), input_types=[Types.LONG()]
    ) as harness:
        harness.process_elements([1, 2])
        assert harness.output == [10, 20]
    assert events == ["scale", "close"]


def test_a_keyed_stream_has_it_too():
    with OperatorHarness.of(
        lambda s: s.key_by(lambda price: price[0]).map_batches(doubled), input_types=[PRICE]
    ) as harness:
        harness.process_elements([Row("a", 1.0), Row("b", 2.0)])
        assert harness.output == [Row(item="a", euros=2.0), Row(item="b", euros=4.0)]


def test_another_number_of_results_is_an_error_that_names_operator_and_function():
    def half(batch):
        return batch.slice(1)

    harness = OperatorHarness.of(lambda s: s.map_batches(half).name("halve"), input_types=[PRICE])
    with pytest.raises(
        UserFunctionError, match="each of the 2 records, but it returned 1"
    ) as caught:
        harness.process_elements([Row("a", 1.0), Row("b", 2.0)])
    assert caught.value.operator == "halve"
    assert caught.value.function.endswith("half")


def test_results_that_do_not_fit_the_type_are_an_error_that_names_the_column():
    harness = harness_of(lambda batch: batch.rename_columns(["item", "dollars"]))
    with pytest.raises(UserFunctionError, match="expected one column 'euros'"):
        harness.process_element(Row("a", 1.0))


def test_a_failure_names_the_function():
    def broken(batch):
        raise ValueError("no such model")

    with pytest.raises(UserFunctionError, match="no such model") as caught:
        harness_of(broken).process_element(Row("a", 1.0))
    assert caught.value.function.endswith("broken")


def test_a_record_that_does_not_fit_the_declared_type_names_the_operator():
    harness = OperatorHarness.of(
        lambda s: s.map_batches(lambda batch: batch).name("same"), input_types=[Types.LONG()]
    )
    with pytest.raises(TypeMismatchError) as caught:
        harness.process_element("one")
    assert caught.value.operator == "same"


@pytest.mark.parametrize(
    ("input_type", "output_type", "message"),
    [
        (Types.PICKLED_BYTE_ARRAY(), None, "the stream has no declared type"),
        (Types.BIG_DEC(), None, "the stream has the type BigDecimal, which is no primitive"),
        (PRICE, Types.LIST(Types.INT()), "the output type has the type"),
        (Types.ROW_NAMED(["x"], [Types.BIG_INT()]), None, "a field x of the type BigInteger"),
    ],
)
def test_types_without_columns_are_refused(input_type, output_type, message):
    with pytest.raises(InvalidProgramError, match=message):
        harness_of(lambda batch: batch, output_type, input_type)


def own_address(batch):
    """A column whose numbers are the address of the column."""
    buffer = pa.allocate_buffer(8 * batch.num_rows)
    memoryview(buffer).cast("b").cast("q")[:] = array("q", [buffer.address] * batch.num_rows)
    return pa.Array.from_buffers(pa.int64(), batch.num_rows, [None, buffer])


def is_at_address(batch):
    column = batch.column("value")
    return pc.equal(column, column.buffers()[1].address)


def test_chained_functions_pass_columns_on_as_they_are():
    def program(env):
        numbers = env.from_collection(list(range(100)), Types.LONG())
        return numbers.map_batches(own_address).map_batches(is_at_address, Types.BOOLEAN())

    harness = JobHarness(program)
    harness.run()
    assert harness.collected == [True] * 100
