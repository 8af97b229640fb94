"""Tables that are created and dropped, as windows do."""

from __future__ import annotations

import tempfile
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.state.backend import KeyGroupFilter
from firesteel.state.key_groups import KeyGroupRange, key_group_of
from tests.state.backends.conftest import MAX_PARALLELISM
from tests.state.backends.subtask_state import SubtaskState
from tests.thoroughness import examples

_OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 3), st.integers(0, 4), st.text(max_size=20)),
        st.tuples(st.just("drop"), st.integers(0, 3)),
        st.tuples(st.just("epoch")),
        st.tuples(st.just("crash"), st.booleans()),
    ),
    max_size=60,
)


def _content(state: SubtaskState) -> dict[str, dict[Any, Any]]:
    return {name: table for name, table in state.backend.snapshot().items() if table}


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operations=_OPERATIONS, threshold=st.sampled_from([0, 200, 1 << 20]))
def test_a_dropped_table_is_gone_and_comes_back_empty(create, operations, threshold):
    with tempfile.TemporaryDirectory() as directory:
        state = SubtaskState(create, directory, threshold)
        now: dict[str, dict[Any, Any]] = {}
        confirmed: dict[str, dict[Any, Any]] = {}
        for name, *arguments in operations:
            if name == "put":
                table, key, value = arguments
                entries = now.setdefault(f"t{table}", {})
                if table % 2 == 0:
                    state.backend.value_table(f"t{table}").put(key, value)
                    entries[key] = value
                else:
                    state.backend.list_table(f"t{table}").append_all([key, key], [value, 1])
                    entries[key] = [*entries.get(key, []), value, 1]
            elif name == "drop":
                table = f"t{arguments[0]}"
                if table in state.backend.descriptions():
                    state.backend.drop_table(table)
                    assert table not in state.backend.descriptions()
                now.pop(table, None)
            elif name == "epoch":
                state.end_epoch()
                confirmed = {table: dict(entries) for table, entries in now.items()}
            else:
                state.crash(same_process=arguments[0])
                now = {table: dict(entries) for table, entries in confirmed.items()}
            assert _content(state) == now
        state.backend.close()


def test_names_and_numbers_of_dropped_tables_do_not_pile_up(create):
    state = SubtaskState(create)
    for number in range(300):
        state.backend.value_table(f"slice/{number}").put("key", number)
        state.end_epoch()
        state.backend.drop_table(f"slice/{number}")
    state.backend.value_table("last").put("key", 1)
    state.end_epoch()
    assert _content(state) == {"last": {"key": 1}}
    assert set(state.backend.descriptions()) == {"last"}
    state.crash()
    assert _content(state) == {"last": {"key": 1}}


def test_what_was_dropped_does_not_come_back_with_another_parallelism(create):
    first, second = SubtaskState(create), SubtaskState(create)
    for state, keys in ((first, range(5)), (second, range(5, 10))):
        for key in keys:
            state.backend.value_table("gone").put(key, "old")
            state.backend.value_table("kept").put(key, "new")
        state.end_epoch()
        state.backend.drop_table("gone")
        state.end_epoch()
    both = create()
    everything = KeyGroupFilter(KeyGroupRange(0, MAX_PARALLELISM - 1), MAX_PARALLELISM)
    for state in (first, second):
        both.add(state.segments(), state.store, everything)
    assert {n: t for n, t in both.snapshot().items() if t} == {
        "kept": dict.fromkeys(range(10), "new")
    }
    assert all(key_group_of(key, MAX_PARALLELISM) < MAX_PARALLELISM for key in range(10))
