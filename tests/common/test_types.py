"""Row and RowKind behave as PyFlink's."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Row, RowKind

field_names = st.lists(
    st.text("abcdefgh", min_size=1, max_size=3), min_size=1, max_size=5, unique=True
)


def test_the_kinds_and_their_short_names():
    assert [(kind.value, str(kind)) for kind in RowKind] == [
        (0, "+I"),
        (1, "-U"),
        (2, "+U"),
        (3, "-D"),
    ]


def test_a_named_row_is_read_by_attribute_name_and_position():
    row = Row(name="Alice", age=11)
    assert (row.name, row["age"], row[0], row[-1]) == ("Alice", 11, "Alice", 11)
    assert row[0:2] == ["Alice", 11]
    assert "name" in row
    assert "Alice" not in row


def test_a_row_without_names_contains_its_values():
    assert "a" in Row("a", 1)
    assert len(Row("a", 1)) == 2
    assert list(Row("a", 1)) == ["a", 1]


def test_a_row_can_serve_as_a_class():
    person = Row("name", "age")
    assert repr(person) == "<Row('name', 'age')>"
    assert repr(person("Alice", 11)) == "Row(name='Alice', age=11)"
    with pytest.raises(ValueError, match="2 field names"):
        person(1, 2, 3)


def test_positional_and_named_values_do_not_mix():
    with pytest.raises(ValueError, match="not both"):
        Row(1, a=2)


def test_values_are_set_by_item_but_not_by_attribute():
    row = Row(a=1, b=2)
    row["a"] = 3
    row[1] = 4
    assert row == Row(a=3, b=4)
    with pytest.raises(AttributeError):
        row.a = 5  # type: ignore[attr-defined]  # refused


def test_unknown_names_are_errors():
    row = Row(a=1)
    with pytest.raises(ValueError, match="b"):
        row["b"]
    with pytest.raises(AttributeError, match="b"):
        row.b
    with pytest.raises(KeyError):
        Row(1)["a"]


def test_as_dict():
    row = Row(key=1, value=Row(name="a", tags=[Row(t=1)]))
    assert row.as_dict() == {"key": 1, "value": Row(name="a", tags=[Row(t=1)])}
    assert row.as_dict(True) == {"key": 1, "value": {"name": "a", "tags": [{"t": 1}]}}
    with pytest.raises(TypeError):
        Row(1).as_dict()


def test_fields_by_names_follow_the_asked_order():
    assert Row(b=2, a=1).get_fields_by_names(["a", "b"]) == [1, 2]
    assert Row(1, 2).get_fields_by_names(["a", "b"]) == [1, 2]
    with pytest.raises(ValueError, match="no field c"):
        Row(a=1).get_fields_by_names(["c"])


def test_equality_looks_at_names_values_and_kind_but_not_at_the_order_of_names():
    assert Row(a=1, b=2) == Row(b=2, a=1)
    assert Row(1, 2) == Row(1, 2)
    assert Row(1, 2) != Row(2, 1)
    assert Row(a=1) != Row(1)
    assert Row(a=1) != Row(b=1)
    assert Row(1) != (1,)
    assert Row(1) != Row.of_kind(RowKind.DELETE, 1)


@given(field_names, st.data(), st.sampled_from(RowKind))
def test_copies_are_equal(names, data, kind):
    values = data.draw(st.lists(st.integers(), min_size=len(names), max_size=len(names)))
    row = Row.of_kind(kind, **dict(zip(names, values, strict=True)))
    for twin in (pickle.loads(pickle.dumps(row)), copy.deepcopy(row), copy.copy(row)):
        assert twin == row
        assert hash(twin) == hash(row)
        assert twin.get_row_kind() is kind
    plain = Row(*values)
    assert pickle.loads(pickle.dumps(plain)) == plain
