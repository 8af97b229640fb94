import pytest

from firesteel.datastream.functions import FlatMapFunction
from firesteel.errors import UserFunctionError
from firesteel.testing import OperatorHarness


def _split(line):
    yield from line.split()


def test_any_number_of_results_per_record():
    with OperatorHarness.of(lambda s: s.flat_map(_split)) as harness:
        harness.process_elements(["to be", "", "or"])
        assert harness.output == ["to", "be", "or"]


def test_any_iterable_will_do():
    with OperatorHarness.of(lambda s: s.flat_map(range)) as harness:
        harness.process_elements([2, 3])
        assert harness.output == [0, 1, 0, 1, 2]


def test_every_result_has_the_timestamp_of_its_record():
    with OperatorHarness.of(lambda s: s.flat_map(_split)) as harness:
        harness.process_elements(["a b", "", "c"], [10, 20, 30])
        assert harness.output_with_timestamps == [("a", 10), ("b", 10), ("c", 30)]


def test_a_function_object():
    class Split(FlatMapFunction):
        def flat_map(self, value):
            return value.split()

    with OperatorHarness.of(lambda s: s.flat_map(Split())) as harness:
        harness.process_element("a b")
        assert harness.output == ["a", "b"]


@pytest.mark.parametrize("timestamps", [None, [1, 2, 3]])
def test_a_failure_inside_a_generator_names_the_record(timestamps):
    def divide(value):
        yield value
        yield 1 // value

    harness = OperatorHarness.of(lambda s: s.flat_map(divide))
    with pytest.raises(UserFunctionError) as caught:
        harness.process_elements([2, 0, 1], timestamps)
    assert caught.value.record == "0"
    assert caught.value.function.endswith("divide")


def test_none_instead_of_results_is_an_error():
    harness = OperatorHarness.of(lambda s: s.flat_map(lambda v: None))
    with pytest.raises(UserFunctionError, match="NoneType"):
        harness.process_element(1)
