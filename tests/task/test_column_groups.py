"""Groups of records with equal keys, compared with dictionaries of Python."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from firesteel.task.column_groups import groups_of

_words = st.none() | st.sampled_from(["a", "b", "ß", ""])


@given(st.lists(st.tuples(_words, st.none() | st.integers(-2, 2), st.booleans()), min_size=1))
def test_groups_are_numbered_in_the_order_of_their_first_records(keys: list[object]) -> None:
    columns = zip(*keys, strict=True)
    types = (pa.string(), pa.int32(), pa.bool_())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    groups = groups_of(arrays)
    distinct = list(dict.fromkeys(keys))
    assert groups.numbers.tolist() == [distinct.index(key) for key in keys]
    assert groups.first.tolist() == [keys.index(key) for key in distinct]
    assert len(groups) == len(distinct)
