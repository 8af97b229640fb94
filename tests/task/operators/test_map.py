import pytest

from firesteel.common import Types
from firesteel.datastream.functions import MapFunction
from firesteel.errors import TypeMismatchError
from firesteel.testing import OperatorHarness


class Count(MapFunction):
    def open(self, runtime_context):
        self.seen = 0
        self.events = ["open"]
        self.context = runtime_context
        self.counter = runtime_context.get_metrics_group().counter("seen")

    def map(self, value):
        self.seen += 1
        self.counter.inc()
        return (value, self.seen)

    def close(self):
        self.events.append("close")


def test_one_result_per_record():
    with OperatorHarness.of(lambda s: s.map(lambda v: v + 1)) as harness:
        harness.process_element(1)
        harness.process_elements([2, 3])
        assert harness.output == [2, 3, 4]


def test_none_is_a_result():
    with OperatorHarness.of(lambda s: s.map(lambda v: None)) as harness:
        harness.process_element(1)
        assert harness.output == [None]


def test_timestamps_are_carried_through():
    with OperatorHarness.of(lambda s: s.map(str)) as harness:
        harness.process_element(1, timestamp=10)
        harness.process_elements([2, 3], [20, 30])
        assert harness.output_with_timestamps == [("1", 10), ("2", 20), ("3", 30)]


def test_watermarks_pass():
    with OperatorHarness.of(lambda s: s.map(str)) as harness:
        harness.process_watermark(5)
        harness.process_watermark(4)
        harness.process_watermark(9)
        assert harness.watermarks == [5, 9]


def test_a_function_object_lives_from_open_to_close():
    function = Count()
    with OperatorHarness.of(
        lambda s: s.map(function).name("counts"), parallelism=3, subtask=2
    ) as harness:
        harness.process_elements("ab")
        assert harness.output == [("a", 1), ("b", 2)]
        context = function.context
        assert context.get_task_name() == "counts"
        assert context.get_index_of_this_subtask() == 2
        assert context.get_number_of_parallel_subtasks() == 3
        assert context.get_max_number_of_parallel_subtasks() == 128
        assert context.get_task_name_with_subtasks() == "counts (3/3)"
        assert harness.metrics() == {"counts.seen": {"kind": "counter", "count": 2}}
    assert function.events == ["open", "close"]


def test_results_become_the_declared_type():
    with OperatorHarness.of(lambda s: s.map(lambda v: [v], Types.TUPLE([Types.INT()]))) as harness:
        harness.process_element(1)
        assert harness.output == [(1,)]


def test_a_result_of_another_type_is_an_error_that_names_operator_value_and_type():
    harness = OperatorHarness.of(lambda s: s.map(lambda v: "x", Types.INT()).name("typed"))
    with pytest.raises(TypeMismatchError) as caught:
        harness.process_element(1)
    assert caught.value.operator == "typed"
    assert caught.value.value == "'x'"


def test_a_failure_names_function_and_record(blames):
    function = lambda v: 1 // v  # noqa: E731
    harness = OperatorHarness.of(lambda s: s.map(function).name("divide"))
    error = blames(harness, [3, 2, 0], operator="divide", function=function)
    assert "1 // v" in str(error)
    assert "operator 'divide'" in str(error)


def test_a_failure_in_a_function_object_names_its_method(blames):
    class Divide(MapFunction):
        def map(self, value):
            return 1 // value

    blames(
        OperatorHarness.of(lambda s: s.map(Divide())),
        [1, 0],
        operator="Map",
        function=Divide.map,
    )


def test_a_failure_to_open_names_the_function():
    class Broken(MapFunction):
        def open(self, runtime_context):
            raise ValueError("no connection")

        def map(self, value):
            return value

    from firesteel.errors import UserFunctionError

    with pytest.raises(UserFunctionError, match="no connection") as caught:
        OperatorHarness.of(lambda s: s.map(Broken())).open()
    assert caught.value.function.endswith("Broken.open")
    assert caught.value.record is None
