import pytest

from firesteel.common import Types
from firesteel.errors import UserFunctionError
from firesteel.testing import OperatorHarness

_TYPE = Types.TUPLE([Types.STRING(), Types.INT(), Types.DOUBLE()])


def test_some_fields_in_a_given_order():
    with OperatorHarness.of(lambda s: s.project(2, 0), input_types=[_TYPE]) as harness:
        harness.process_element(("a", 1, 0.5), timestamp=7)
        assert harness.output_with_timestamps == [((0.5, "a"), 7)]


def test_one_field_is_still_a_tuple():
    with OperatorHarness.of(lambda s: s.project(1), input_types=[_TYPE]) as harness:
        harness.process_elements([("a", 1, 0.5), ("b", 2, 1.5)])
        assert harness.output == [(1,), (2,)]


def test_a_record_without_the_field_is_named():
    harness = OperatorHarness.of(lambda s: s.project(2), input_types=[_TYPE])
    with pytest.raises(UserFunctionError) as caught:
        harness.process_elements([("a", 1, 0.5), ("short",)])
    assert caught.value.operator == "Projection"
    assert caught.value.record == "('short',)"
