"""Restoring: each entry goes to the subtask that owns its key now. Errors name what does not fit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.checkpoint.metadata import KeyedStateFile, OperatorMetadata, SubtaskState
from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.rules.redistribution import KeyedPart
from firesteel.checkpoint.rules.restore import (
    MaxParallelismChangedError,
    NonRestoredStateError,
    OperatorAssignment,
    RestoreTarget,
    StateTypeChangedError,
    SubtaskAssignment,
    plan_restore,
    restore_targets,
    with_stored_max_parallelism,
)
from firesteel.checkpoint.state_descriptions import StateDescription, describe_tables
from firesteel.checkpoint.storage.segment_store import StorageSegmentStore
from firesteel.common import Types
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.state.backend import KeyGroupFilter
from firesteel.state.changelog import Segment, with_segment
from firesteel.state.elements import decode_element, encode_element
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.state.key_groups import KeyGroupRange, key_group_of, subtask_of
from firesteel.state.operator_state import OperatorState, Redistribution
from firesteel.state.table_descriptions import TableDescription, TableKind
from tests.checkpoint.builders import metadata, operator

_STATE = SubtaskState((Segment(1, True, 1, inline=b"x"),))


def _target(
    name: str, parallelism: int = 1, *, uid: str | None = None, max_parallelism: int = 128, **rest
) -> RestoreTarget:
    return RestoreTarget(f"id-of-{name}", uid, name, parallelism, max_parallelism, **rest)


def _assign(state: OperatorMetadata, parallelism: int, **options) -> OperatorAssignment:
    target = _target(state.name, parallelism, max_parallelism=state.max_parallelism)
    return plan_restore(metadata(state), [target], **options).assignments[state.operator_id]


class TestMatching:
    def test_by_id_and_by_uid(self) -> None:
        plan = plan_restore(
            metadata(operator("by id", _STATE), operator("renamed", _STATE, uid="count")),
            [_target("by id"), _target("another id", uid="count"), _target("added", uid="fresh")],
        )
        assert set(plan.assignments) == {"id-of-by id", "id-of-another id"}
        assert plan.message == (
            "Operators with restored state: 'by id' (id id-of-by id), 'another id' (uid 'count'). "
            "New operators, without state: 'added' (uid 'fresh'). State that no operator of the job "
            "claims: none."
        )

    def test_the_id_counts_more_than_the_uid(self) -> None:
        first, second = operator("a", _STATE, uid="one"), operator("b", _STATE, uid="two")
        target = RestoreTarget("id-of-a", "two", "a", 1, 128)
        plan = plan_restore(metadata(first, second), [target], allow_non_restored_state=True)
        assert plan.missing == ("'b' (uid 'two')",)

    def test_state_that_would_be_lost_is_refused_unless_that_is_wanted(self) -> None:
        given = metadata(operator("kept", _STATE), operator("gone", _STATE, uid="old"))
        targets = [_target("kept"), _target("added")]
        with pytest.raises(NonRestoredStateError, match=r"ignore-unclaimed-state: true") as caught:
            plan_restore(given, targets)
        assert caught.value.missing == ("'gone' (uid 'old')",)
        for title in ("'kept'", "'added'", "'gone' (uid 'old')"):
            assert title in str(caught.value)
        plan = plan_restore(given, targets, allow_non_restored_state=True)
        assert (plan.missing, set(plan.assignments)) == (("'gone' (uid 'old')",), {"id-of-kept"})

    def test_an_operator_without_state_is_not_missed(self) -> None:
        nothing = SubtaskState(opaque=Payload.of([1]), finished=True)
        assert plan_restore(metadata(operator("map", nothing)), []).missing == ()


class TestRefusals:
    def test_another_maximum_parallelism(self) -> None:
        given = metadata(operator("count", _STATE, max_parallelism=64))
        with pytest.raises(
            MaxParallelismChangedError, match=r"64, but the program sets 128.*to 64"
        ):
            plan_restore(given, [_target("count")])
        derived = _target("count", max_parallelism_is_set=False)
        plan = plan_restore(given, [derived])
        assert plan.assignments["id-of-count"].max_parallelism == 64

    def test_it_does_not_matter_without_keyed_state(self) -> None:
        given = metadata(
            operator("source", SubtaskState(splits=(Payload.of(1),)), max_parallelism=64)
        )
        plan = plan_restore(given, [_target("source")])
        assert plan.assignments["id-of-source"].max_parallelism == 128

    def test_more_subtasks_than_key_groups(self) -> None:
        given = metadata(operator("count", _STATE, max_parallelism=4))
        target = _target("count", 5, max_parallelism=8, max_parallelism_is_set=False)
        with pytest.raises(MaxParallelismChangedError, match=r"parallelism of 5.*to 4 or less"):
            plan_restore(given, [target])

    def test_another_type(self) -> None:
        longs = TableDescription(TableKind.VALUE, element_type=Types.LONG())
        texts = TableDescription(TableKind.MAP, entry_type=Types.STRING())
        stored = describe_tables({"total": longs, "same": longs}, Types.STRING())
        wanted = describe_tables({"total": texts, "same": longs, "new": texts}, Types.STRING())
        given = metadata(operator("count", _STATE, states=stored))
        with pytest.raises(StateTypeChangedError) as caught:
            plan_restore(given, [_target("count", states=wanted)])
        assert caught.value.states == ("total",)
        assert (
            "the state 'total' was stored as a value state of Long by keys of type STRING, but the "
            "program declares a map state of String to any Python object by keys of type STRING"
        ) in str(caught.value)

    def test_the_same_types_are_fine(self) -> None:
        states = (StateDescription("rules", "operator broadcast"),)
        given = metadata(operator("count", _STATE, states=states))
        plan_restore(given, [_target("count", states=states)])


class TestSameParallelism:
    def test_everything_stays_where_it_was(self) -> None:
        states = tuple(
            SubtaskState(
                segments=(Segment(1, True, 1, inline=bytes([index])),),
                operator_state={"l": _list(Redistribution.SPLIT, [index])},
                splits=(Payload.of(f"split {index}"),),
                writer_states=(Payload.of(f"part {index}"),),
                committables=(Payload.of(f"file {index}"),),
                opaque=Payload.of({"watermark": index}),
                finished=index == 1,
            )
            for index in range(2)
        )
        assigned = _assign(operator("count", *states), 2, same_directory=True)
        assert assigned.subtasks == tuple(
            SubtaskAssignment(
                key_groups=KeyGroupRange.of_subtask(index, 2, 128),
                keyed=(KeyedPart(state.segments, (), is_exact=True),),
                operator_state=state.operator_state,
                splits=state.splits,
                writer_states=state.writer_states,
                committables=state.committables,
                opaque=state.opaque,
                finished=state.finished,
            )
            for index, state in enumerate(states)
        )

    def test_in_another_directory_state_is_written_anew(self) -> None:
        (assigned,) = _assign(operator("count", _STATE), 1).subtasks
        assert assigned.must_materialize
        assert assigned.keyed == (KeyedPart(_STATE.segments, (), is_exact=True),)

    def test_a_coordinator_gets_its_state(self) -> None:
        state = operator("source", SubtaskState(), coordinator=Payload.of({"seen": 7}))
        assert _assign(state, 3).coordinator == Payload.of({"seen": 7})


_elements = st.lists(st.lists(st.integers(), max_size=5), min_size=1, max_size=5)


def _list(rule: Redistribution, elements: list[int]) -> OperatorState:
    return OperatorState(rule, tuple(map(encode_element, elements)), f'["{rule.value}", "LONG"]')


def _with_lists(rule: Redistribution, contents: list[list[int]]) -> OperatorMetadata:
    states = [SubtaskState(operator_state={"l": _list(rule, one)}) for one in contents]
    return operator("source", *states)


def _lists(assigned: OperatorAssignment) -> list[list[int]]:
    return [
        [decode_element(element) for element in subtask.operator_state["l"].elements]
        for subtask in assigned.subtasks
    ]


class TestOperatorState:
    @given(_elements, st.integers(1, 6))
    def test_split_ones_are_dealt_out_evenly_and_in_order(
        self, contents: list[list[int]], parallelism: int
    ) -> None:
        dealt = _lists(_assign(_with_lists(Redistribution.SPLIT, contents), parallelism))
        if parallelism == len(contents):
            assert dealt == contents
            return
        assert [element for one in dealt for element in one] == [
            element for one in contents for element in one
        ]
        sizes = list(map(len, dealt))
        assert max(sizes) - min(sizes) <= 1

    @given(_elements, st.integers(1, 6))
    def test_union_ones_go_to_all(self, contents: list[list[int]], parallelism: int) -> None:
        together = [element for one in contents for element in one]
        assigned = _assign(_with_lists(Redistribution.UNION, contents), parallelism)
        assert _lists(assigned) == [together] * parallelism

    @given(st.lists(st.integers(), max_size=3), st.integers(1, 5), st.integers(1, 6))
    def test_broadcast_ones_are_copied(
        self, content: list[int], old_parallelism: int, parallelism: int
    ) -> None:
        given = _with_lists(Redistribution.BROADCAST, [content] * old_parallelism)
        assert _lists(_assign(given, parallelism)) == [content] * parallelism


@pytest.mark.parametrize("field", ["splits", "writer_states", "committables"])
@given(
    contents=st.lists(st.lists(st.text()), min_size=1, max_size=4), parallelism=st.integers(1, 5)
)
def test_splits_and_committables_go_to_exactly_one_subtask(
    field: str, contents: list[list[str]], parallelism: int
) -> None:
    fields: list[dict[str, Any]] = [{field: tuple(map(Payload.of, one))} for one in contents]
    state = operator("io", *(SubtaskState(**one) for one in fields))
    found = [
        [payload.load() for payload in getattr(subtask, field)]
        for subtask in _assign(state, parallelism).subtasks
    ]
    assert [one for share in found for one in share] == [one for share in contents for one in share]
    if parallelism == len(contents):
        assert found == contents
    else:
        assert max(map(len, found)) - min(map(len, found)) <= 1


class TestKeyGroups:
    @given(st.integers(1, 9), st.integers(1, 9), st.integers(9, 200))
    def test_each_key_group_is_read_once_by_its_owner(
        self, old: int, new: int, max_parallelism: int
    ) -> None:
        states = [
            SubtaskState((Segment(1, True, 1, inline=bytes([index])),)) for index in range(old)
        ]
        assigned = _assign(operator("count", *states, max_parallelism=max_parallelism), new)
        for group in range(max_parallelism):
            owner = assigned.subtasks[subtask_of(group, new, max_parallelism)]
            assert group in owner.key_groups
            holder = states[subtask_of(group, old, max_parallelism)]
            assert [part for part in owner.keyed if part.segments == holder.segments]
        for subtask in assigned.subtasks:
            # No more is read than shares a key group.
            for part in subtask.keyed:
                (segment,) = part.segments
                assert segment.inline is not None
                held = KeyGroupRange.of_subtask(segment.inline[0], old, max_parallelism)
                common = [
                    group
                    for group in range(held.start, held.end + 1)
                    if group in subtask.key_groups
                ]
                assert common
                assert part.is_exact == (len(common) == held.end - held.start + 1)

    def test_only_files_with_wanted_key_groups_are_read(self) -> None:
        low, high = (
            KeyedStateFile(name, 1, 1, groups)
            for name, groups in (("low", KeyGroupRange(0, 40)), ("high", KeyGroupRange(60, 127)))
        )
        assigned = _assign(operator("count", SubtaskState(files=(low, high))), 2)
        assert [part.files for subtask in assigned.subtasks for part in subtask.keyed] == [
            (low, high),
            (high,),
        ]


_changes = st.lists(
    st.dictionaries(
        st.integers(0, 40) | st.text(max_size=2), st.integers() | st.none(), max_size=12
    ),
    max_size=3,
)


@given(st.integers(1, 5), st.lists(st.tuples(_changes, st.integers(1, 5)), min_size=1, max_size=5))
def test_any_sequence_of_rescalings_keeps_every_entry(
    parallelism: int, steps: list[tuple[list[dict], int]]
) -> None:
    """2 to 3 to 1 and so on, with changes in between; each new subtask restores what it was assigned."""
    max_parallelism = 16
    store = StorageSegmentStore(None, 0)
    expected: dict = {}
    backends = [HashMapKeyedStateBackend() for _ in range(parallelism)]
    logs: list[list[Segment]] = [[] for _ in range(parallelism)]
    epoch = 0
    for changes, new_parallelism in steps:
        for change in changes:
            epoch += 1
            for key, value in change.items():
                group = key_group_of(key, max_parallelism)
                table = backends[subtask_of(group, parallelism, max_parallelism)].value_table("t")
                if value is None:
                    table.remove(key)
                    expected.pop(key, None)
                else:
                    table.put(key, value)
                    expected[key] = value
            for index, backend in enumerate(backends):
                for segment in backend.seal(epoch, store):
                    logs[index] = with_segment(logs[index], segment)
                backend.confirm()
        state = operator(
            "count", *(SubtaskState(tuple(log)) for log in logs), max_parallelism=max_parallelism
        )
        assigned = _assign(state, new_parallelism)
        parallelism = new_parallelism
        backends = [HashMapKeyedStateBackend() for _ in range(parallelism)]
        logs = [[] for _ in range(parallelism)]
        for index, subtask in enumerate(assigned.subtasks):
            only = KeyGroupFilter(subtask.key_groups, max_parallelism)
            for part in subtask.keyed:
                backends[index].add(part.segments, store, None if part.is_exact else only)
        epoch += 1
        found: dict = {}
        for index, backend in enumerate(backends):
            for entry in backend.entries():
                assert (
                    key_group_of(entry.key, max_parallelism) in assigned.subtasks[index].key_groups
                )
                assert entry.key not in found
                found[entry.key] = entry.value
            for segment in backend.seal(epoch, store):
                logs[index] = with_segment(logs[index], segment)
            backend.confirm()
        assert found == expected


def test_a_graph_takes_over_the_key_groups_of_the_checkpoint() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.from_sequence(1, 9).key_by(lambda x: x).reduce(max).uid("max").print()
    graph = env._compile().job_graph
    targets = restore_targets(graph)
    reduce = next(target for target in targets if target.uid == "max")
    assert (reduce.parallelism, reduce.max_parallelism_is_set) == (2, False)
    stored = OperatorMetadata(reduce.operator_id, "max", "Reduce", 1, 64, (_STATE,))
    plan = plan_restore(metadata(stored), targets)
    changed = with_stored_max_parallelism(graph, plan)
    limits = {node.uid: node.max_parallelism for node in changed.nodes.values()}
    assert limits["max"] == 64
    assert limits[None] == 128
    assert {vertex.max_parallelism for vertex in changed.vertices} == {64, 128}
    env.set_max_parallelism(128)
    with pytest.raises(MaxParallelismChangedError):
        plan_restore(metadata(stored), restore_targets(env._compile().job_graph))


class TestRowsInFlight:
    OLD = (Segment(1, True, 1, inline=b"a"),), (Segment(1, True, 1, inline=b"b"),)

    def assigned(self, parallelism: int) -> OperatorAssignment:
        states = tuple(SubtaskState(in_flight=rows) for rows in self.OLD)
        stored = metadata(operator("map", *states))
        target = RestoreTarget("id-of-map", None, "map", parallelism, 128)
        return plan_restore(stored, [target]).assignments["id-of-map"]

    def test_with_the_same_parallelism_each_subtask_gets_its_own(self) -> None:
        found = self.assigned(2)
        assert [subtask.in_flight for subtask in found.subtasks] == [(rows,) for rows in self.OLD]
        assert not found.is_rescaled

    def test_with_a_different_one_each_subtask_looks_at_all(self) -> None:
        found = self.assigned(3)
        assert [subtask.in_flight for subtask in found.subtasks] == [self.OLD] * 3
        assert found.is_rescaled
