"""Loops with the expression of a key selector in them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.errors import UserFunctionError
from firesteel.state.stable_hash import FOLDED_INTS
from firesteel.task.codegen.expressions import expression_of
from firesteel.task.codegen.fusion import FusedNode, KeyedLoop, Step, StepKind
from firesteel.task.codegen.key_loops import KeySelection, RoutingLoops, keys_of
from firesteel.task.record_batch import RecordBatch


def half(record: Any) -> Any:
    return record[0] // 2


@given(st.lists(st.tuples(st.integers(-(10**6), 10**6))))
def test_a_selection_has_the_keys_that_the_function_returns(records: list[Any]) -> None:
    assert KeySelection(half, "key_by").keys_of(records) == keys_of(records, half, "key_by")


def failing_in_a_loop(selection: KeySelection, records: list[Any]) -> None:
    step = Step(StepKind.REDUCE, max, lambda error, _: AssertionError(error))
    KeyedLoop(FusedNode(step)).process(RecordBatch(records, selection=selection), {}, {}.get)


@pytest.mark.parametrize("compute", [KeySelection.keys_of, failing_in_a_loop])
def test_a_failure_shows_the_line_of_the_key_selector_and_the_record(compute: Any) -> None:
    with pytest.raises(UserFunctionError) as raised:
        compute(KeySelection(half, "key_by after Map"), [(1,), (None,), (2,)])
    assert (raised.value.operator, raised.value.record) == ("key_by after Map", "(None,)")
    text = raised.value.traceback_text
    assert text.count("Traceback") == text.count("return record[0] // 2") == 1
    assert "<firesteel" not in text


def test_selections_of_the_same_function_share_a_loop() -> None:
    assert len({KeySelection(half, "key_by"), KeySelection(half, "key_by")}) == 1


@given(st.lists(st.tuples(st.integers(-(10**12), 10**12))))
def test_routing_loops_add_records_to_the_buffers_of_their_folded_keys(records: list[Any]) -> None:
    buffers: dict[int, list[Any]] = {}

    class Table:
        """A buffer for each folded key, as the hash writer has it, without the memory."""

        def __getitem__(self, index: int) -> Any:
            return buffers.setdefault(index % FOLDED_INTS, []).append

    expression = expression_of(half, "record")
    assert expression is not None
    loops = RoutingLoops.of(expression)
    expected: dict[int, list[Any]] = {}
    for record in records:
        expected.setdefault(half(record) % FOLDED_INTS, []).append(record)
    loops.large(records, Table())  # type: ignore[arg-type]
    assert buffers == expected
    buffers.clear()
    loops.small(records, Table())  # type: ignore[arg-type]
    assert buffers == expected
