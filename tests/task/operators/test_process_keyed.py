import pytest

from firesteel.datastream import OutputTag
from firesteel.datastream.functions import KeyedProcessFunction, KeySelector
from firesteel.errors import UserFunctionError
from firesteel.state.key_groups import key_group_of, subtask_of
from firesteel.testing import OperatorHarness, WrongSubtaskError


class TagWithKey(KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield ctx.get_current_key(), value
        if value < 0:
            yield OutputTag("negative"), value


def _program(stream):
    return stream.key_by(lambda v: v % 3).process(TagWithKey())


def test_the_context_knows_the_key():
    with OperatorHarness.of(_program) as harness:
        harness.process_elements([1, 2, 3, -1])
        assert harness.output == [(1, 1), (2, 2), (0, 3), (2, -1)]
        assert harness.side_output("negative") == [-1]


def test_a_key_of_another_subtask_is_refused():
    owners = {key: subtask_of(key_group_of(key, 128), 2, 128) for key in range(20)}
    assert set(owners.values()) == {0, 1}
    with OperatorHarness.of(
        lambda s: s.key_by(lambda v: v).process(TagWithKey()), parallelism=2, subtask=1
    ) as harness:
        for key, owner in owners.items():
            if owner == 1:
                harness.process_element(key)
            else:
                with pytest.raises(WrongSubtaskError, match=f"key {key} belongs to subtask 0"):
                    harness.process_element(key)
        assert [value for _, value in harness.output] == [k for k, o in owners.items() if o == 1]


def test_a_key_selector_object_is_opened_and_closed():
    class Selector(KeySelector):
        events = []

        def open(self, runtime_context):
            self.events.append("open")

        def get_key(self, value):
            return value

        def close(self):
            self.events.append("close")

    with OperatorHarness.of(lambda s: s.key_by(Selector()).process(TagWithKey())) as harness:
        harness.process_element(5)
        assert harness.output == [(5, 5)]
    assert Selector.events == ["open", "close"]


def test_a_failing_key_selector_is_named():
    harness = OperatorHarness.of(lambda s: s.key_by(lambda v: 1 // v).process(TagWithKey()))
    with pytest.raises(UserFunctionError) as caught:
        harness.process_elements([1, 0])
    assert caught.value.operator.startswith("key_by")
    assert caught.value.record == "0"


def test_a_failure_names_the_method_and_the_record(blames):
    class Divide(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield 1 // value

    blames(
        OperatorHarness.of(lambda s: s.key_by(lambda v: 0).process(Divide())),
        [1, 0],
        operator="KEYED PROCESS",
        function=Divide.process_element,
    )
