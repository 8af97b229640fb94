import pytest

from firesteel.datastream import OutputTag
from firesteel.datastream.functions import CoProcessFunction, KeyedCoProcessFunction
from firesteel.errors import InvalidProgramError
from firesteel.testing import OperatorHarness, WrongSubtaskError


class Label(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield "first", value, ctx.timestamp()

    def process_element2(self, value, ctx):
        yield OutputTag("second"), 1 // value


class KeyedLabel(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield 1, ctx.get_current_key(), value

    def process_element2(self, value, ctx):
        yield 2, ctx.get_current_key(), value


def _keyed(a, b):
    return a.connect(b).key_by(lambda v: v % 10, lambda v: v // 10).process(KeyedLabel())


def test_each_input_has_its_own_method():
    with OperatorHarness.of(lambda a, b: a.connect(b).process(Label())) as harness:
        harness.process_element1("x", timestamp=3)
        harness.process_element2(1)
        assert harness.output_with_timestamps == [(("first", "x", 3), 3)]
        assert harness.side_output("second") == [1]


def test_keyed_inputs_share_their_keys():
    with OperatorHarness.of(_keyed) as harness:
        harness.process_element1(47)
        harness.process_element2(71)
        assert harness.output == [(1, 7, 47), (2, 7, 71)]


def test_keys_of_other_subtasks_are_refused_on_both_inputs():
    refused = []
    with OperatorHarness.of(_keyed, parallelism=2) as harness:
        for key in range(10):
            for process, value in (
                (harness.process_element1, key),
                (harness.process_element2, key * 10),
            ):
                try:
                    process(value)
                except WrongSubtaskError:
                    refused.append(key)
        accepted = [key for _, key, _ in harness.output]
    assert sorted(refused + accepted) == sorted([*range(10), *range(10)])
    assert set(refused).isdisjoint(accepted)
    assert refused


def test_one_input_has_no_second():
    harness = OperatorHarness.of(lambda s: s.map(str))
    with pytest.raises(InvalidProgramError, match="has only one input"):
        harness.process_element2(1)


def test_a_failure_names_the_method_of_the_input(blames):
    blames(
        OperatorHarness.of(lambda a, b: a.connect(b).process(Label())),
        [1, 0],
        operator="Co-Process",
        function=Label.process_element2,
        second=True,
    )
