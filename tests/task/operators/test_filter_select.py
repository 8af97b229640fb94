from firesteel.datastream.functions import OutputSelector
from firesteel.testing import OperatorHarness


def _size(value):
    return ["small", "any"] if value < 10 else ["large", "any"]


def test_records_go_where_the_selector_says():
    with OperatorHarness.of(lambda s: s.split(_size).select("large")) as harness:
        harness.process_elements([1, 10, 2, 20])
        assert harness.output == [10, 20]


def test_a_record_under_two_of_the_names_comes_once():
    with OperatorHarness.of(lambda s: s.split(_size).select("large", "any")) as harness:
        harness.process_elements([1, 10])
        assert harness.output == [1, 10]


def test_a_selector_object_is_opened():
    class Selector(OutputSelector):
        def open(self, runtime_context):
            self.limit = 5

        def select(self, value):
            return ["low"] if value < self.limit else ["high"]

    with OperatorHarness.of(lambda s: s.split(Selector()).select("low")) as harness:
        harness.process_elements([4, 5], [40, 50])
        assert harness.output_with_timestamps == [(4, 40)]


def test_a_failure_names_the_selector(blames):
    selector = lambda v: [1 // v]  # noqa: E731
    blames(
        OperatorHarness.of(lambda s: s.split(selector).select("x")),
        [1, 0],
        operator="Select",
        function=selector,
    )


def test_a_text_is_one_name_and_not_its_letters():
    with OperatorHarness.of(lambda s: s.split(lambda v: "ab" if v else "b").select("b")) as harness:
        harness.process_elements([1, 0, 1])
        assert harness.output == [0]
