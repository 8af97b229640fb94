from firesteel.datastream.functions import CoFlatMapFunction
from firesteel.testing import OperatorHarness


class Words(CoFlatMapFunction):
    def flat_map1(self, value):
        yield from value.split()

    def flat_map2(self, value):
        if value:
            return [1 // (value - 1)] * value
        return None


def _program(a, b):
    return a.connect(b).flat_map(Words())


def test_any_number_of_results_from_either_input():
    with OperatorHarness.of(_program) as harness:
        harness.process_element1("a b")
        harness.process_element2(2)
        assert harness.output == ["a", "b", 1, 1]


def test_none_is_no_result():
    with OperatorHarness.of(_program) as harness:
        harness.process_element2(0)
        assert harness.output == []


def test_every_result_has_the_timestamp_of_its_record():
    with OperatorHarness.of(_program) as harness:
        harness.process_element2(2, timestamp=9)
        harness.process_elements(["a b", "", "c"], [1, 2, 3])
        assert harness.output_with_timestamps == [(1, 9), (1, 9), ("a", 1), ("b", 1), ("c", 3)]


def test_a_failure_names_the_method_of_the_input(blames):
    blames(
        OperatorHarness.of(_program),
        [2, 1],
        operator="Co-Flat Map",
        function=Words.flat_map2,
        second=True,
    )
