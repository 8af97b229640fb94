from firesteel.datastream.functions import CoMapFunction
from firesteel.testing import OperatorHarness


class Label(CoMapFunction):
    def map1(self, value):
        return f"first {value}" if value else None

    def map2(self, value):
        return f"second {1 // value}"


def _program(a, b):
    return a.connect(b).map(Label())


def test_each_input_has_its_own_method():
    with OperatorHarness.of(_program) as harness:
        harness.process_element1(1)
        harness.process_element2(1)
        assert harness.output == ["first 1", "second 1"]


def test_none_is_no_result():
    with OperatorHarness.of(_program) as harness:
        harness.process_elements([0, 1, 0, 2], [10, 20, 30, 40])
        assert harness.output_with_timestamps == [("first 1", 20), ("first 2", 40)]
        harness.process_element1(0)
        assert len(harness.output) == 2


def test_the_watermark_is_the_lower_of_both_inputs():
    with OperatorHarness.of(_program) as harness:
        harness.process_watermark1(5)
        assert harness.watermarks == []
        harness.process_watermark2(3)
        harness.process_watermark2(9)
        assert harness.watermarks == [3, 5]


def test_a_failure_names_the_method_of_the_input(blames):
    blames(
        OperatorHarness.of(_program),
        [1, 0],
        operator="Co-Map",
        function=Label.map2,
        second=True,
    )
