"""One table: base and overlay look like one dictionary."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from firesteel.state.hashmap.table import MISSING, StateTable

_keys = st.integers(0, 5)
_operations = st.lists(
    st.one_of(
        st.tuples(st.just("put"), _keys, st.integers()),
        st.tuples(st.just("remove"), _keys),
        st.tuples(st.just("confirm")),
    )
)


@given(_operations)
def test_a_table_is_a_dictionary(operations: list[tuple[object, ...]]) -> None:
    table, expected = StateTable(), {}
    overlay, base = table.overlay, table.base
    for name, *arguments in operations:
        getattr(table, name)(*arguments)
        if name == "put":
            expected[arguments[0]] = arguments[1]
        elif name == "remove":
            expected.pop(arguments[0], None)
        else:
            # The next epoch's segment holds that epoch's changes only.
            assert table.overlay == {}
        assert dict(table.items()) == expected
        assert len(table) == len(expected)
        assert [table.get(key) for key in range(6)] == [expected.get(k, MISSING) for k in range(6)]
    # Loops hold on to the dictionaries.
    assert table.overlay is overlay
    assert table.base is base


def test_the_base_does_not_change_before_it_is_confirmed() -> None:
    table = StateTable()
    table.put("a", 1)
    assert table.base == {}
    table.confirm()
    table.remove("a")
    assert table.base == {"a": 1}
    table.confirm()
    assert table.base == {}


def test_none_is_a_value() -> None:
    table = StateTable()
    table.put("a", None)
    assert table.get("a") is None
    assert table.get("b") is MISSING


def test_the_mark_for_missing_stays_the_same_object() -> None:
    assert pickle.loads(pickle.dumps({"a": MISSING}))["a"] is MISSING
    assert repr(MISSING) == "<missing>"
