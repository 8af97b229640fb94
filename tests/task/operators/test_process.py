from collections.abc import Callable
from typing import Any

import pytest

from firesteel.common import Types
from firesteel.common.constants import MIN_WATERMARK
from firesteel.datastream import OutputTag
from firesteel.datastream.functions import KeyedProcessFunction, ProcessFunction
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.errors import InvalidProgramError, UserFunctionError
from firesteel.testing import OperatorHarness

ODD = OutputTag("odd")


class SplitByParity(ProcessFunction):
    def process_element(self, value, ctx):
        if value % 2:
            yield ODD, value
        else:
            yield value


class Look(ProcessFunction):
    """Emits what the context says."""

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        yield (ctx.timestamp(), timers.current_processing_time(), timers.current_watermark())


def test_main_and_side_output():
    with OperatorHarness.of(lambda s: s.process(SplitByParity())) as harness:
        harness.process_elements(range(5))
        assert harness.output == [0, 2, 4]
        assert harness.side_output(ODD) == harness.side_output("odd") == [1, 3]
        assert harness.side_output("nobody") == []


def test_a_pair_without_a_tag_is_a_plain_result():
    class Pairs(ProcessFunction):
        def process_element(self, value, ctx):
            yield "odd", value

    with OperatorHarness.of(lambda s: s.process(Pairs())) as harness:
        harness.process_element(1)
        assert harness.output == [("odd", 1)]


def test_none_is_no_result_and_a_list_is_all_of_its_elements():
    class Some(ProcessFunction):
        def process_element(self, value, ctx):
            return [value, None] if value else None

    with OperatorHarness.of(lambda s: s.process(Some())) as harness:
        harness.process_elements([0, 1])
        assert harness.output == [1, None]


def test_the_context_tells_the_times():
    with OperatorHarness.of(lambda s: s.process(Look())) as harness:
        harness.process_element("a")
        harness.set_processing_time(1_000)
        harness.process_watermark(50)
        harness.advance_processing_time(500)
        harness.process_element("b", timestamp=60)
        assert harness.output == [(None, 0, MIN_WATERMARK), (60, 1_500, 50)]


def test_results_have_the_timestamp_of_the_record():
    with OperatorHarness.of(lambda s: s.process(SplitByParity())) as harness:
        harness.process_elements([2, 3, 4], [20, 30, 40])
        assert harness.output_with_timestamps == [(2, 20), (4, 40)]


class Everything(ProcessFunction, KeyedProcessFunction):  # type: ignore[misc]  # two Contexts
    """Returns a different kind of result for each record."""

    def process_element(self, value, ctx):
        results: dict[str, Callable[[], Any]] = {
            "none": lambda: None,
            "nothing": list,
            "list": lambda: [(ODD, "side"), "main"],
            "generator": lambda: (result for result in ("one", None, (ODD, "other"))),
            "tuple": lambda: ((), (ODD,), (ODD, 1, 2), ("odd", 1)),
        }
        return results[value]()


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("timestamps", [None, [10, 20, 30, 40, 50]])
def test_results_of_a_batch_come_in_order_with_their_records_times(keyed, timestamps):
    def program(stream):
        return (stream.key_by(lambda value: value) if keyed else stream).process(Everything())

    records = ["none", "list", "nothing", "generator", "tuple"]
    main = ["main", "one", None, (), (ODD,), (ODD, 1, 2), ("odd", 1)]
    with OperatorHarness.of(program) as harness:
        harness.process_elements(records, timestamps)
        stamps = [20, 40, 40, 50, 50, 50, 50] if timestamps else [None] * 7
        assert harness.output_with_timestamps == list(zip(main, stamps, strict=True))
        assert harness.side_output(ODD) == ["side", "other"]


def test_a_generator_that_fails_late_is_blamed_for_its_own_record():
    class Late(ProcessFunction):
        def process_element(self, value, ctx):
            yield value
            if value == 2:
                raise ValueError("late")

    with OperatorHarness.of(lambda s: s.process(Late())) as harness:
        with pytest.raises(UserFunctionError) as raised:
            harness.process_elements([1, 2, 3])
        assert raised.value.record == "2"
        assert harness.output == []


def test_timers_and_keyed_state_need_a_key():
    class Timer(ProcessFunction):
        def open(self, runtime_context):
            with pytest.raises(InvalidProgramError, match=r"'PROCESS' has no key.*key_by"):
                runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

        def process_element(self, value, ctx):
            timers = ctx.timer_service()
            for change in (
                timers.register_event_time_timer,
                timers.register_processing_time_timer,
                timers.delete_event_time_timer,
                timers.delete_processing_time_timer,
            ):
                with pytest.raises(InvalidProgramError, match="only supported on a keyed stream"):
                    change(1)
            return ["refused"]

    with OperatorHarness.of(lambda s: s.process(Timer())) as harness:
        harness.process_element(1)
        assert harness.output == ["refused"]


def test_a_failure_names_the_method_and_the_record(blames):
    class Divide(ProcessFunction):
        def process_element(self, value, ctx):
            yield 1 // value

    blames(
        OperatorHarness.of(lambda s: s.process(Divide())),
        [1, 0],
        operator="PROCESS",
        function=Divide.process_element,
    )


def test_two_operators_are_too_many():
    with pytest.raises(InvalidProgramError, match=r"has 2: 'Map', 'Filter'.*JobHarness"):
        OperatorHarness.of(lambda s: s.map(str).filter(bool))


def test_no_operator_is_too_few():
    with pytest.raises(InvalidProgramError, match="No operators defined"):
        OperatorHarness.of(lambda s: s.rebalance())
