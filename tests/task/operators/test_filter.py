from firesteel.datastream.functions import FilterFunction
from firesteel.testing import OperatorHarness


def test_what_is_true_stays():
    with OperatorHarness.of(lambda s: s.filter(lambda v: v % 2)) as harness:
        harness.process_elements(range(6))
        assert harness.output == [1, 3, 5]


def test_timestamps_stay_with_their_records():
    with OperatorHarness.of(lambda s: s.filter(lambda v: v % 2)) as harness:
        harness.process_elements([1, 2, 3], [10, 20, 30])
        assert harness.output_with_timestamps == [(1, 10), (3, 30)]


def test_a_function_object():
    class Odd(FilterFunction):
        def filter(self, value):
            return value % 2 == 1

    with OperatorHarness.of(lambda s: s.filter(Odd())) as harness:
        harness.process_elements(range(4))
        assert harness.output == [1, 3]


def test_a_failure_names_function_and_record(blames):
    condition = lambda v: 1 // v  # noqa: E731
    blames(
        OperatorHarness.of(lambda s: s.filter(condition)),
        [1, 2, 0],
        operator="Filter",
        function=condition,
    )
