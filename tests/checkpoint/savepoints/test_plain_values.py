"""State as columns of DataFrames, and the way back."""

from __future__ import annotations

import pyarrow as pa

from firesteel.checkpoint.savepoints.plain_values import from_plain, plain_column
from firesteel.common import Instant, Row, Types

TIMES = Types.ROW_NAMED(
    ["at", "all"], [Types.INSTANT(), Types.MAP(Types.STRING(), Types.LIST(Types.INSTANT()))]
)


def test_instants_in_state_are_timestamps_and_come_back_as_they_were():
    early, late = Instant(-1, 1000), Instant.of_epoch_milli(1_719_828_000_123)
    states = [Row(at=early, all={"k": [early, late]}), Row(at=None, all={})]
    column = plain_column(states, TIMES)
    assert column.type == TIMES.to_arrow_type()
    assert [from_plain(value, TIMES) for value in column.to_pylist()] == states


def test_instants_finer_than_a_column_are_shown_as_text():
    column = plain_column([Instant(0, 1)], Types.INSTANT())
    assert column.equals(pa.array(["Instant<0, 1>"]))
