"""sum, min, max, min_by, max_by."""

from typing import NamedTuple

import pytest

from firesteel.common import Row
from firesteel.errors import InvalidProgramError, UserFunctionError
from firesteel.testing import OperatorHarness


class Sale(NamedTuple):
    shop: str
    amount: int
    note: str


def _row(shop, amount, note):
    return Row(shop, amount, note)


def _named(shop, amount, note):
    return Row(shop=shop, amount=amount, note=note)


_SALES = [("a", 5, "x"), ("a", 3, "y"), ("a", 5, "z"), ("a", 9, "w")]
_AMOUNTS = {
    # The other fields are those of the first record.
    "sum": [(5, "x"), (8, "x"), (13, "x"), (22, "x")],
    "min": [(5, "x"), (3, "x"), (3, "x"), (3, "x")],
    "max": [(5, "x"), (5, "x"), (5, "x"), (9, "x")],
    # The whole record, the earlier one of equals.
    "min_by": [(5, "x"), (3, "y"), (3, "y"), (3, "y")],
    "max_by": [(5, "x"), (5, "x"), (5, "x"), (9, "w")],
}


@pytest.mark.parametrize("kind", list(_AMOUNTS))
@pytest.mark.parametrize(
    ("make", "position"),
    [
        (lambda *fields: fields, 1),
        (lambda *fields: list(fields), 1),
        (Sale, 1),
        (_row, 1),
        (_named, 1),
        (_named, "amount"),
    ],
    ids=["tuple", "list", "named tuple", "Row", "named Row", "named Row by name"],
)
def test_records_with_fields(kind, make, position):
    def program(stream):
        return getattr(stream.key_by(lambda record: record[0]), kind)(position)

    records = [make(*sale) for sale in _SALES]
    with OperatorHarness.of(program) as harness:
        harness.process_elements(records)
        assert harness.output == [make("a", *rest) for rest in _AMOUNTS[kind]]
        assert {type(result) for result in harness.output} == {type(records[0])}
    assert records == [make(*sale) for sale in _SALES], "the input is not changed"


@pytest.mark.parametrize("kind", list(_AMOUNTS))
def test_a_named_tuple_by_name(kind):
    with OperatorHarness.of(
        lambda s: getattr(s.key_by(lambda sale: sale.shop), kind)("amount")
    ) as harness:
        harness.process_elements([Sale(*sale) for sale in _SALES])
        assert [(sale.amount, sale.note) for sale in harness.output] == _AMOUNTS[kind]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sum", [4, 6, 13]),
        ("min", [4, 2, 2]),
        ("max", [4, 4, 7]),
        ("min_by", [4, 2, 2]),
        ("max_by", [4, 4, 7]),
    ],
)
def test_a_plain_value_is_its_own_field(kind, expected):
    with OperatorHarness.of(lambda s: getattr(s.key_by(lambda v: 0), kind)()) as harness:
        harness.process_elements([4, 2, 7])
        assert harness.output == expected


@pytest.mark.parametrize("position", [1, "amount"])
def test_a_plain_value_has_no_other_field(position):
    harness = OperatorHarness.of(lambda s: s.key_by(lambda v: 0).sum(position))
    with pytest.raises(InvalidProgramError, match="has only field 0"):
        harness.process_element(4)


@pytest.mark.parametrize("kind", list(_AMOUNTS))
def test_a_tuple_has_no_names(kind):
    harness = OperatorHarness.of(lambda s: getattr(s.key_by(lambda v: 0), kind)("amount"))
    with pytest.raises(InvalidProgramError, match="no field names"):
        harness.process_element(("a", 1))


def test_a_named_tuple_tells_its_names():
    harness = OperatorHarness.of(lambda s: s.key_by(lambda v: 0).sum("price"))
    with pytest.raises(InvalidProgramError, match="Sale has the fields shop, amount, note"):
        harness.process_element(Sale("a", 1, "x"))


@pytest.mark.parametrize("position", [0, 2])
def test_the_first_and_the_last_field(position):
    with OperatorHarness.of(lambda s: s.key_by(lambda v: 0).sum(position)) as harness:
        harness.process_elements([(1, 2, 3), (10, 20, 30)])
        expected = [1, 2, 3]
        expected[position] += [10, 20, 30][position]
        assert harness.output == [(1, 2, 3), tuple(expected)]


def test_results_that_were_emitted_do_not_change():
    with OperatorHarness.of(lambda s: s.key_by(lambda v: 0).sum(0)) as harness:
        harness.process_element([1])
        (first,) = harness.extract_output()
        harness.process_element([2])
        assert first == [1]
        assert harness.output == [[3]]


def test_timestamps_are_carried_through():
    with OperatorHarness.of(lambda s: s.key_by(lambda v: 0).sum(0)) as harness:
        harness.process_elements([1, 2], [10, 20])
        assert harness.output_with_timestamps == [(1, 10), (3, 20)]


def test_a_batch_gives_each_keys_last_result_at_the_end():
    with OperatorHarness.of(lambda s: s.key_by(lambda r: r[0]).sum(1), batch=True) as harness:
        harness.process_elements([("a", 1), ("b", 2), ("a", 3)])
        assert harness.output == []
        harness.finish()
        assert sorted(harness.output) == [("a", 4), ("b", 2)]


def test_it_goes_on_from_a_snapshot():
    def program(stream):
        return stream.key_by(lambda r: r[0]).sum(1)

    with OperatorHarness.of(program) as harness:
        harness.process_element(("a", 1))
        snapshot = harness.snapshot()
    with OperatorHarness.restored(program, snapshot) as restored:
        restored.process_element(("a", 2))
        assert restored.output == [("a", 3)]


def test_a_failure_names_the_record():
    harness = OperatorHarness.of(lambda s: s.key_by(lambda r: r[0]).sum(1).name("total"))
    with pytest.raises(UserFunctionError) as caught:
        harness.process_elements([("a", 1), ("a", None)])
    assert caught.value.operator == "total"
    assert caught.value.record == "('a', None)"
    assert "TypeError" in str(caught.value)


def test_tuples_of_a_different_size_are_summed_too_and_so_are_restored_ones():
    def program(stream):
        return stream.key_by(lambda record: record[0]).sum(1)

    with OperatorHarness.of(program) as harness:
        harness.process_elements([("a", 1), ("b", 2, "wide"), ("a", 3, "wide"), ("b", 4)])
        assert harness.output == [("a", 1), ("b", 2, "wide"), ("a", 4), ("b", 6, "wide")]
        snapshot = harness.snapshot()
    with OperatorHarness.restored(program, snapshot) as harness:
        harness.process_elements([("a", 10), ("b", 10), ("c", 10)])
        assert harness.output == [("a", 14), ("b", 16, "wide"), ("c", 10)]
