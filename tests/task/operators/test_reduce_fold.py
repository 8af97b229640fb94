from firesteel.datastream.functions import FoldFunction
from firesteel.testing import OperatorHarness


def _program(stream):
    return stream.key_by(len).fold(0, lambda total, word: total + len(word))


def test_it_rolls_per_key_from_the_initial_value():
    with OperatorHarness.of(_program) as harness:
        harness.process_elements(["a", "bb", "c", "dd"])
        assert harness.output == [1, 2, 2, 4]
        assert harness.keyed_state() == {"fold": {1: 2, 2: 4}}


def test_every_key_starts_from_its_own_copy():
    def append(seen, value):
        return [*seen, value]

    with OperatorHarness.of(lambda s: s.key_by(lambda v: v % 2).fold([], append)) as harness:
        harness.process_elements([1, 2, 3])
        assert harness.output == [[1], [2], [1, 3]]


def test_a_mutable_initial_value_is_not_shared_between_keys():
    def append(seen, value):
        seen.append(value)
        return seen

    with OperatorHarness.of(lambda s: s.key_by(lambda v: v % 2).fold([], append)) as harness:
        harness.process_elements([1, 2, 3])
        assert harness.keyed_state() == {"fold": {1: [1, 3], 0: [2]}}


def test_a_result_has_the_timestamp_of_the_record_that_made_it():
    with OperatorHarness.of(_program) as harness:
        harness.process_elements(["a", "b"], [5, 3])
        assert harness.output_with_timestamps == [(1, 5), (2, 3)]


def test_a_function_object():
    class Longest(FoldFunction):
        def fold(self, accumulator, value):
            return max(accumulator, value, key=len)

    with OperatorHarness.of(lambda s: s.key_by(lambda v: 0).fold("", Longest())) as harness:
        harness.process_elements(["ox", "cat", "ant"])
        assert harness.output == ["ox", "cat", "cat"]


def test_a_batch_gives_each_keys_last_result_at_the_end():
    with OperatorHarness.of(_program, batch=True) as harness:
        harness.process_elements(["a", "bb", "c"])
        assert harness.output == []
        harness.finish()
        assert sorted(harness.output) == [2, 2]


def test_it_goes_on_from_a_snapshot():
    with OperatorHarness.of(_program) as harness:
        harness.process_elements(["a", "bb"])
        snapshot = harness.snapshot()
    with OperatorHarness.restored(_program, snapshot) as restored:
        restored.process_element("c")
        assert restored.output == [2]


def test_a_failure_names_function_and_record(blames):
    divide = lambda a, b: a // b  # noqa: E731
    blames(
        OperatorHarness.of(lambda s: s.key_by(lambda v: 0).fold(8, divide)),
        [2, 0],
        operator="Fold",
        function=divide,
    )
