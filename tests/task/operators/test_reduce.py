import pickle

import pytest

from firesteel.datastream.functions import ReduceFunction
from firesteel.errors import InvalidProgramError
from firesteel.state.key_groups import key_group_of, subtask_of
from firesteel.testing import OperatorHarness


def _add(a, b):
    return (a[0], a[1] + b[1])


def _program(stream):
    return stream.key_by(lambda r: r[0]).reduce(_add)


def test_it_rolls_per_key():
    with OperatorHarness.of(_program) as harness:
        harness.process_elements([("a", 1), ("b", 10), ("a", 2), ("a", 3)])
        assert harness.output == [("a", 1), ("b", 10), ("a", 3), ("a", 6)]
        assert harness.keyed_state() == {"reduce": {"a": ("a", 6), "b": ("b", 10)}}


def test_the_first_record_of_a_key_is_its_first_result():
    with OperatorHarness.of(lambda s: s.key_by(id).reduce(lambda a, b: 1 // 0)) as harness:
        harness.process_element(None)
        assert harness.output == [None]


def test_none_is_a_value_like_any_other():
    with OperatorHarness.of(lambda s: s.key_by(lambda v: 0).reduce(lambda a, b: None)) as harness:
        harness.process_elements([1, 2, 3])
        assert harness.output == [1, None, None]
        assert harness.keyed_state() == {"reduce": {0: None}}


def test_a_result_has_the_timestamp_of_the_record_that_made_it():
    with OperatorHarness.of(_program) as harness:
        harness.process_elements([("a", 1), ("a", 2)], [10, 5])
        assert harness.output_with_timestamps == [(("a", 1), 10), (("a", 3), 5)]


def test_a_function_object():
    class Add(ReduceFunction):
        def reduce(self, value1, value2):
            return value1 + value2

    with OperatorHarness.of(lambda s: s.key_by(lambda v: v % 2).reduce(Add())) as harness:
        harness.process_elements([1, 2, 3])
        assert harness.output == [1, 2, 4]


def test_a_batch_gives_each_keys_last_result_at_the_end():
    with OperatorHarness.of(_program, batch=True) as harness:
        harness.process_elements([("a", 1), ("b", 10), ("a", 2)])
        assert harness.output == []
        harness.finish()
        assert sorted(harness.output) == [("a", 3), ("b", 10)]
        harness.finish()
        assert len(harness.output) == 2


def test_a_stream_gives_nothing_more_at_the_end():
    with OperatorHarness.of(_program) as harness:
        harness.process_element(("a", 1))
        harness.finish()
        assert harness.output == [("a", 1)]


def test_it_goes_on_from_a_snapshot():
    with OperatorHarness.of(_program) as harness:
        harness.process_elements([("a", 1), ("b", 10)])
        snapshot = pickle.loads(pickle.dumps(harness.snapshot()))
        harness.process_element(("a", 100))
    with OperatorHarness.restored(_program, snapshot) as restored:
        restored.process_elements([("a", 2), ("b", 20), ("c", 1)])
        assert restored.output == [("a", 3), ("b", 30), ("c", 1)]


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 3), (4, 4)])
def test_another_parallelism_moves_whole_key_groups(before, after):
    keys = [f"key {number}" for number in range(200)]

    def owned(parallelism, subtask):
        return [k for k in keys if subtask_of(key_group_of(k, 128), parallelism, 128) == subtask]

    snapshots = []
    for subtask in range(before):
        with OperatorHarness.of(_program, parallelism=before, subtask=subtask) as harness:
            harness.process_elements([(key, 1) for key in owned(before, subtask)])
            snapshots.append(harness.snapshot())
    for subtask in range(after):
        with OperatorHarness.restored(_program, snapshots, after, subtask) as harness:
            mine = owned(after, subtask)
            assert harness.keyed_state() == {"reduce": {key: (key, 1) for key in mine}}
            harness.process_elements([(key, 1) for key in mine])
            assert harness.output == [(key, 2) for key in mine]


def test_all_snapshots_are_needed():
    with OperatorHarness.of(_program, parallelism=2) as harness:
        snapshot = harness.snapshot()
    with pytest.raises(InvalidProgramError, match="each of the 2 subtasks"):
        OperatorHarness.restored(_program, [snapshot])


def test_a_failure_names_function_and_record(blames):
    divide = lambda a, b: a // b  # noqa: E731
    blames(
        OperatorHarness.of(lambda s: s.key_by(lambda v: 0).reduce(divide)),
        [8, 2, 0],
        operator="Reduce",
        function=divide,
    )
