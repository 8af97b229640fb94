import pyarrow as pa
import pyarrow.compute as pc
import pytest

from firesteel.common import Types
from firesteel.errors import UserFunctionError
from firesteel.testing import OperatorHarness


def harness_of(function, output_type=None, input_type=None):
    return OperatorHarness.of(
        lambda s: s.flat_map_batches(function, output_type).name("many"),
        input_types=[input_type or Types.STRING()],
    )


def words(batch):
    return pc.list_flatten(lists(batch))


def lists(batch):
    return pc.utf8_split_whitespace(batch.column("value"))


def words_with_origins(batch):
    return words(batch), pc.list_parent_indices(lists(batch))


def test_any_number_of_results():
    with harness_of(words) as harness:
        harness.process_elements(["to be", "or not"])
        assert harness.output == ["to", "be", "or", "not"]


def test_no_results():
    with harness_of(lambda batch: batch.slice(0, 0)) as harness:
        harness.process_elements(["a", "b"])
        assert harness.output == []


def test_results_take_the_timestamps_of_their_records():
    with harness_of(words_with_origins) as harness:
        harness.process_elements(["to be", "or"], [30, 20])
        assert harness.output_with_timestamps == [("to", 30), ("be", 30), ("or", 20)]


def test_results_may_change_their_order():
    with harness_of(lambda batch: (batch.take([1, 0, 1]), [1, 0, 1])) as harness:
        harness.process_elements(["a", "b"], [1, 2])
        assert harness.output_with_timestamps == [("b", 2), ("a", 1), ("b", 2)]


def test_results_of_another_type():
    with harness_of(lambda batch: pc.utf8_length(batch.column(0)), Types.INT()) as harness:
        harness.process_elements(["a", "bb"])
        assert harness.output == [1, 2]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda b: b, "tell whose timestamp a result takes"),
        (lambda b: (b, [0]), "2 results, but 1 positions"),
        (lambda b: (b, [0, 2]), "from 0 to 1, got 2"),
        (lambda b: (b, [-1, 0]), "from 0 to 1, got -1"),
        (lambda b: (b, [None, 0]), "a position of a record is null"),
        (lambda b: (b, pa.array(["a", "b"])), "positions of records must be integers"),
        (lambda b: (b, [0, 1], "x"), "a tuple of 3"),
    ],
)
def test_results_without_their_records_are_an_error(result, message):
    with pytest.raises(UserFunctionError, match=message) as caught:
        harness_of(result).process_elements(["a", "b"], [1, 2])
    assert caught.value.operator == "many"
