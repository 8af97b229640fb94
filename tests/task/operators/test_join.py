from __future__ import annotations

import time
from collections import Counter

import pytest

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import Types
from firesteel.common.types import Row, RowKind
from firesteel.datastream.functions import JoinFunction
from firesteel.datastream.state import StateTtlConfig
from firesteel.errors import UserFunctionError
from firesteel.testing import OperatorHarness
from tests.task.changes import described, fold


def join(how="inner", *, predicate=None, ttl=None, function=None, key=lambda record: record[0]):
    def program(a, b):
        joined = a.join_on(b, how).where(key).equal_to(key)
        if predicate is not None:
            joined.filter(predicate)
        if ttl is not None:
            joined.with_ttl(ttl)
        return joined.apply(function)

    return program


def _deleted(*fields):
    return Row.of_kind(RowKind.DELETE, *fields)


@pytest.mark.usefixtures("every_backend")
def test_an_inner_join_only_inserts():
    harness = OperatorHarness.of(join(function=lambda left, right: (left[1], right[1])))
    harness.process_element1(("a", "x"), timestamp=1)
    harness.process_element2(("b", 1), timestamp=2)
    assert harness.output == []
    harness.end_epoch()
    harness.process_elements2([("a", 1), ("a", 2)], [3, 4])
    harness.process_element1(("b", "y"), timestamp=5)
    assert described(harness.output) == ["+I x, 1", "+I x, 2", "+I y, 1"]
    assert [stamp for _, stamp in harness.output_with_timestamps] == [3, 4, 5]


@pytest.mark.usefixtures("every_backend")
@pytest.mark.parametrize("predicate", [None, lambda left, right: True])
def test_a_left_join_replaces_the_result_without_a_match(predicate):
    harness = OperatorHarness.of(join("left", predicate=predicate))
    harness.process_elements1([("a", "x"), ("a", "x")])
    harness.process_element2(("b", 0))
    harness.end_epoch()
    harness.process_elements2([("a", 1), ("a", 2)])
    assert described(harness.output) == [
        "+I ('a', 'x'), None",
        "+I ('a', 'x'), None",
        "-U ('a', 'x'), None",
        "+U ('a', 'x'), ('a', 1)",
        "-U ('a', 'x'), None",
        "+U ('a', 'x'), ('a', 1)",
        "+I ('a', 'x'), ('a', 2)",
        "+I ('a', 'x'), ('a', 2)",
    ]


@pytest.mark.usefixtures("every_backend")
@pytest.mark.parametrize("predicate", [None, lambda left, right: True])
def test_a_right_join_takes_back_what_is_deleted(predicate):
    harness = OperatorHarness.of(join("right", predicate=predicate))
    harness.process_element1(Row("a", "x"))
    harness.process_element2(Row("a", 1))
    harness.end_epoch()
    harness.process_element1(_deleted("a", "x"))
    harness.process_element2(_deleted("a", 1))
    assert described(harness.output) == [
        "+I <Row('a', 'x')>, <Row('a', 1)>",
        "-U <Row('a', 'x')>, <Row('a', 1)>",
        "+U None, <Row('a', 1)>",
        "-D None, <Row('a', 1)>",
    ]
    harness.end_epoch()
    assert not any(harness.keyed_state().values())


def test_an_update_of_an_input_is_a_row_taken_back_and_another_one():
    harness = OperatorHarness.of(join("left"))
    harness.process_element1(Row("a", "x"))
    harness.process_element2(Row("a", 1))
    harness.process_element2(Row.of_kind(RowKind.UPDATE_BEFORE, "a", 1))
    harness.process_element2(Row.of_kind(RowKind.UPDATE_AFTER, "a", 2))
    assert fold(harness.output) == {(Row("a", "x"), Row("a", 2)): 1}


def test_a_delete_of_a_row_that_is_not_there_changes_nothing():
    harness = OperatorHarness.of(join("full"))
    harness.process_element1(Row("a", "x"))
    harness.process_element1(_deleted("a", "y"))
    harness.process_element2(_deleted("a", 1))
    assert fold(harness.output) == {(Row("a", "x"), None): 1}


def test_keys_with_nulls_never_match_and_are_not_kept():
    harness = OperatorHarness.of(join("full", key=lambda record: record[:2]))
    harness.process_elements1([(None, 1), (1, None), (1, 1)])
    harness.process_elements2([(None, 1), (1, None), (1, 1)])
    assert fold(harness.output) == Counter(
        [
            ((None, 1), None),
            ((1, None), None),
            (None, (None, 1)),
            (None, (1, None)),
            ((1, 1), (1, 1)),
        ]
    )
    assert [set(table) for table in harness.keyed_state().values()] == [{(1, 1)}, {(1, 1)}]


def test_a_stream_joins_with_itself():
    def program(numbers):
        return numbers.join_on(numbers).where(lambda n: n % 3).equal_to(lambda n: n % 3).apply()

    harness = OperatorHarness.of(program)
    harness.process_elements(range(6))
    expected = Counter((a, b) for a in range(6) for b in range(6) if a % 3 == b % 3)
    assert fold(harness.output) == expected


def test_a_function_makes_the_fields_and_is_opened():
    class Priced(JoinFunction):
        def open(self, runtime_context):
            self.currency = "EUR"

        def join(self, first, second):
            return Row(order=first[1], price=second and second[1], currency=self.currency)

    harness = OperatorHarness.of(join("left", function=Priced()))
    harness.process_element1(("a", 7))
    harness.process_element2(("a", 9.5))
    last = Row.of_kind(RowKind.UPDATE_AFTER, order=7, price=9.5, currency="EUR")
    assert harness.output[-1] == last


@pytest.mark.usefixtures("every_backend")
@pytest.mark.parametrize("how", ["inner", "full"])
def test_records_that_cannot_be_hashed_are_joined_too(how):
    harness = OperatorHarness.of(join(how, key=lambda record: record["k"]))
    left = {"k": 1, "tags": ["x", {"y": {1, 2}}], "row": Row(a=[1])}
    harness.process_element1(left)
    harness.process_element1({"tags": ["x", {"y": {2, 1}}], "row": Row(a=[1]), "k": 1})
    harness.end_epoch()
    harness.process_element2({"k": 1})
    results = [change for change in harness.output if change[1] is not None]
    assert [tuple(change) for change in results] == [(left, {"k": 1})] * 2


def test_what_others_do_to_a_result_does_not_reach_the_state():
    harness = OperatorHarness.of(join())
    harness.process_element1(Row("a", 1))
    for _ in range(2):
        harness.process_element2(Row("a", 2))
        left, right = harness.extract_output()[0]
        assert (left, right) == (Row("a", 1), Row("a", 2))
        left[1] = right[1] = "spoiled"


@pytest.mark.usefixtures("every_backend")
@pytest.mark.parametrize("types", [(), (Types.TUPLE([Types.STRING(), Types.INT()]),) * 2])
def test_the_state_survives_a_restart_with_another_parallelism(types):
    program = join("left", predicate=lambda left, right: left[1] <= right[1])
    keys = [f"key {number}" for number in range(20)]
    with OperatorHarness.of(program, input_types=types) as harness:
        harness.process_elements1([(key, n) for n, key in enumerate(keys)])
        harness.process_elements2([(key, 9) for key in keys[:10]])
        snapshot = harness.snapshot()
        changes = harness.output
    for subtask in range(2):
        with OperatorHarness.restored(program, snapshot, 2, subtask, types) as harness:
            mine = set(harness.keyed_state()["join/left"])
            harness.process_elements2([(key, 100) for key in keys if key in mine])
            changes += harness.output
    expected = Counter(((key, n), (key, 9)) for n, key in enumerate(keys[:10]))
    expected.update(((key, n), (key, 100)) for n, key in enumerate(keys))
    assert fold(changes) == expected


# Time to live


@pytest.mark.usefixtures("every_backend")
@pytest.mark.parametrize("ttl", [Time.seconds(10), Duration.of_seconds(10)])
def test_expired_records_are_not_joined(ttl):
    harness = OperatorHarness.of(join(ttl=ttl))
    harness.set_processing_time(1_000)
    harness.process_element1(("a", 1))
    harness.set_processing_time(10_999)
    harness.process_element2(("a", 2))
    harness.end_epoch()
    harness.set_processing_time(11_000)
    harness.process_element2(("a", 3))
    assert described(harness.output) == ["+I ('a', 1), ('a', 2)"]


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_a_match_does_not_make_records_live_longer(how):
    harness = OperatorHarness.of(join(how, ttl=Time.seconds(10)))
    harness.set_processing_time(0)
    harness.process_element1(("a", 1))
    harness.set_processing_time(9_000)
    harness.process_element2(("a", 2))
    harness.set_processing_time(10_000)
    harness.process_element2(("a", 3))
    joined = {pair for pair in fold(harness.output) if None not in pair}
    assert joined == {(("a", 1), ("a", 2))}


@pytest.mark.usefixtures("every_backend")
def test_a_result_that_stays_is_not_replaced_when_its_match_has_expired():
    """The left record is read and stays; the match of it goes, but its result is never taken back."""
    ttl = StateTtlConfig.new_builder(Time.seconds(10)).update_ttl_on_read_and_write().build()
    harness = OperatorHarness.of(join("left", ttl=ttl))
    harness.set_processing_time(0)
    harness.process_element2(("a", "first"))
    harness.set_processing_time(5_000)
    harness.process_element1(("a", 1))
    harness.set_processing_time(14_000)
    harness.process_element2(("b", "to clean up"))
    harness.set_processing_time(14_999)
    harness.process_element2(("a", "second"))
    assert fold(harness.output) == Counter(
        [(("a", 1), ("a", "first")), (("a", 1), ("a", "second"))]
    )


def test_expired_records_leave_the_state():
    ttl = StateTtlConfig.new_builder(Time.seconds(10)).cleanup_incrementally(10, True).build()
    harness = OperatorHarness.of(join(ttl=ttl))
    harness.process_elements1([(key, 1) for key in range(50)])
    harness.end_epoch()
    harness.advance_processing_time(10_000)
    for key in range(50, 60):
        harness.process_element1((key, 1))
        harness.end_epoch()
    assert set(harness.keyed_state()["join/left"]) == set(range(50, 60))


# Failures and cost


def test_a_failing_predicate_is_named_with_the_record():
    def fail(left, right):
        return 1 // right[1]

    harness = OperatorHarness.of(join(predicate=fail))
    harness.process_element1(("a", 1))
    with pytest.raises(UserFunctionError) as caught:
        harness.process_elements2([("a", 0), ("a", 1)])
    assert caught.value.operator == "Inner Join"
    assert caught.value.function == fail.__qualname__
    assert caught.value.record == "('a', 0)"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["inner", "full"])
def test_adding_to_a_key_with_many_rows_costs_the_same(how):
    """One side has thousands of rows of one key; neither adding nor deleting looks at all of them."""

    def seconds(rows: int) -> float:
        harness = OperatorHarness.of(join(how))
        harness.process_elements1([Row("a", n) for n in range(rows)])
        harness.end_epoch()
        started = time.process_time()
        harness.process_elements1([Row("a", -n) for n in range(1, 1_000)])
        harness.process_elements1([_deleted("a", n) for n in range(1_000)])
        return time.process_time() - started

    def best(rows: int) -> float:
        return min(seconds(rows) for _ in range(3))

    seconds(100)
    assert best(40_000) < 8 * max(best(1_000), 0.01)
