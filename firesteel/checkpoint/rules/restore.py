"""Assigns the state of a checkpoint to the subtasks of a new graph. It reads no files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from firesteel.checkpoint.metadata import CheckpointMetadata, OperatorMetadata, operator_title
from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.rules.redistribution import (
    KeyedPart,
    Sharing,
    redistribute_in_flight,
    redistribute_keyed_state,
    redistribute_operator_state,
    redistribute_payloads,
    shared_keyed_state,
)
from firesteel.checkpoint.state_descriptions import (
    StateDescription,
    in_words,
    key_type_of,
    table_descriptions,
)
from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import FiresteelError
from firesteel.graph.job_graph import JobGraph, key_types_of
from firesteel.graph.partitioning import ShipStrategy
from firesteel.state.changelog import Segment
from firesteel.state.key_groups import KeyGroupRange
from firesteel.state.operator_state import OperatorStates
from firesteel.state.type_descriptions import describe_type


class RestoreError(FiresteelError, ValueError):
    """The checkpoint does not fit the program."""


class NonRestoredStateError(RestoreError):
    """The checkpoint has state that no operator of the program claims."""

    def __init__(self, missing: Sequence[str], listing: str) -> None:
        super().__init__(
            f"{listing} To drop that state, set "
            "execution.state-recovery.ignore-unclaimed-state: true. If an operator was not "
            "recognized, give it the uid that it had when the checkpoint was taken"
        )
        self.missing = tuple(missing)


class MaxParallelismChangedError(RestoreError):
    """The maximum parallelism changed, so that keys would belong to different key groups."""

    def __init__(self, operator: str, stored: int, reason: str) -> None:
        super().__init__(
            f"the state of {operator} was written with a maximum parallelism of {stored}, but "
            f"{reason}"
        )
        self.operator = operator
        self.stored = stored


class KeyTypeChangedError(RestoreError, TypeError):
    """The key type changed, so no key would find its state."""

    def __init__(self, operator: str, stored: str, wanted: str) -> None:
        super().__init__(
            f"the keyed state of {operator} was stored under keys of type {stored}, but the "
            f"program's key_by now returns keys of type {wanted}, which would not find the state. "
            "Keep the key type, or give the operator a different uid and drop the state"
        )
        self.operator = operator


class StateTypeChangedError(RestoreError, TypeError):
    """The kind or type of a state changed."""

    def __init__(self, operator: str, changed: Sequence[tuple[str, str, str]]) -> None:
        what = "; ".join(
            f"the state '{name}' was stored as {stored}, but the program declares {wanted}"
            for name, stored, wanted in changed
        )
        super().__init__(
            f"{operator}: {what}. Give the new state a different name, or keep the kind and type"
        )
        self.operator = operator
        self.states = tuple(name for name, _, _ in changed)


@dataclass(frozen=True, slots=True)
class RestoreTarget:
    """An operator of the new graph.

    ``max_parallelism_is_set``: by the program. A derived one gives way to that of the checkpoint.
    ``key_type``: None if the program does not declare it.
    ``states``: None if they become known only when the operator is opened.
    ``sharing``: None if key groups divide the keyed state, as they usually do.
    """

    operator_id: str
    uid: str | None
    name: str
    parallelism: int
    max_parallelism: int
    max_parallelism_is_set: bool = True
    key_type: TypeInformation | None = None
    states: tuple[StateDescription, ...] | None = None
    sharing: Sharing | None = None

    @property
    def title(self) -> str:
        return operator_title(self.name, self.uid, self.operator_id)


@dataclass(frozen=True, slots=True)
class SubtaskAssignment:
    """The initial state of a new subtask.

    ``must_materialize``: the subtask writes all keyed state again, because the segments in
    ``keyed`` do not belong to it.
    ``is_shared``: ``keyed`` is the state of all old subtasks, and this one takes its share.
    """

    key_groups: KeyGroupRange
    keyed: tuple[KeyedPart, ...] = ()
    operator_state: OperatorStates = field(default_factory=dict)
    splits: tuple[Payload, ...] = ()
    writer_states: tuple[Payload, ...] = ()
    committables: tuple[Payload, ...] = ()
    opaque: Payload | None = None
    # Rows in flight, by the earlier subtask that they were on their way to.
    in_flight: tuple[tuple[Segment, ...], ...] = ()
    finished: bool = False
    must_materialize: bool = False
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class OperatorAssignment:
    """The state of an operator. ``states`` are the stored ones, which declarations must match."""

    operator_id: str
    max_parallelism: int
    subtasks: tuple[SubtaskAssignment, ...]
    states: tuple[StateDescription, ...] = ()
    coordinator: Payload | None = None
    is_rescaled: bool = False


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Assignments by operator id of the new graph, and the titles of the operators.

    ``matched``: operators with state in the checkpoint.
    ``new``: operators without.
    ``missing``: state without an operator.
    """

    assignments: Mapping[str, OperatorAssignment]
    matched: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return _listing(self.matched, self.new, self.missing)


def plan_restore(
    metadata: CheckpointMetadata,
    targets: Sequence[RestoreTarget],
    *,
    allow_non_restored_state: bool = False,
    same_directory: bool = False,
) -> RestorePlan:
    """Assign the state to the subtasks of the new graph.

    ``same_directory``: a restart of the same job, whose files stay where they are. Subtasks whose
    state does not move keep their segments.
    """
    pairs, missing = _match(metadata.operators, targets)
    lost = tuple(operator.title for operator in missing)
    matched = tuple(target.title for target in targets if target.operator_id in pairs)
    new = tuple(target.title for target in targets if target.operator_id not in pairs)
    if lost and not allow_non_restored_state:
        raise NonRestoredStateError(lost, _listing(matched, new, lost))
    assignments = {
        target.operator_id: _assign(pairs[target.operator_id], target, same_directory)
        for target in targets
        if target.operator_id in pairs
    }
    return RestorePlan(assignments, matched, new, lost)


def _match(
    operators: Sequence[OperatorMetadata], targets: Sequence[RestoreTarget]
) -> tuple[dict[str, OperatorMetadata], list[OperatorMetadata]]:
    """Old operators by id of the new ones, and old operators whose state is not claimed."""
    ids = {target.operator_id for target in targets}
    pairs = {o.operator_id: o for o in operators if o.operator_id in ids}
    # A uid identifies an operator even if a uid hash changes its id.
    by_uid = {t.uid: t for t in targets if t.uid is not None and t.operator_id not in pairs}
    missing = []
    for operator in operators:
        if operator.operator_id in ids:
            continue
        target = None if operator.uid is None else by_uid.get(operator.uid)
        if target is not None:
            pairs[target.operator_id] = operator
        elif not operator.is_empty:
            missing.append(operator)
    return pairs, missing


def _assign(
    operator: OperatorMetadata, target: RestoreTarget, same_directory: bool
) -> OperatorAssignment:
    _check_max_parallelism(operator, target)
    _check_key_type(operator, target)
    if target.states is not None:
        check_state_types(target.title, operator.states, target.states)
    parallelism = target.parallelism
    max_parallelism = (
        operator.max_parallelism if operator.has_keyed_state else target.max_parallelism
    )
    unchanged = parallelism == operator.parallelism
    all_finished = all(subtask.finished for subtask in operator.subtasks)
    has_files = any(subtask.files for subtask in operator.subtasks)
    kept = unchanged and same_directory and not has_files
    keyed: list[tuple[KeyedPart, ...]] = [()] * parallelism
    sharing = None if unchanged else target.sharing
    if operator.has_keyed_state:
        keyed = (
            redistribute_keyed_state(operator, parallelism)
            if sharing is None
            else shared_keyed_state(operator, parallelism, sharing)
        )
    operator_state = redistribute_operator_state(operator, parallelism)
    splits = redistribute_payloads([one.splits for one in operator.subtasks], parallelism)
    writers = redistribute_payloads([one.writer_states for one in operator.subtasks], parallelism)
    in_flight = redistribute_in_flight(operator, parallelism)
    prepared = redistribute_payloads([one.committables for one in operator.subtasks], parallelism)
    return OperatorAssignment(
        operator_id=target.operator_id,
        max_parallelism=max_parallelism,
        states=operator.states,
        coordinator=operator.coordinator,
        is_rescaled=not unchanged,
        subtasks=tuple(
            SubtaskAssignment(
                key_groups=KeyGroupRange.of_subtask(index, parallelism, max_parallelism),
                keyed=keyed[index],
                operator_state=operator_state[index],
                splits=splits[index],
                writer_states=writers[index],
                committables=prepared[index],
                in_flight=in_flight[index],
                opaque=operator.subtasks[index].opaque if unchanged else None,
                finished=operator.subtasks[index].finished if unchanged else all_finished,
                must_materialize=bool(keyed[index]) and not kept,
                is_shared=sharing is Sharing.ROUTED,
            )
            for index in range(parallelism)
        ),
    )


def _check_max_parallelism(operator: OperatorMetadata, target: RestoreTarget) -> None:
    if not operator.has_keyed_state:
        return
    changed = operator.max_parallelism != target.max_parallelism
    if changed and target.max_parallelism_is_set:
        raise MaxParallelismChangedError(
            target.title,
            operator.max_parallelism,
            f"the program sets {target.max_parallelism}. The key groups of stored keys depend on "
            f"it, so it cannot change: set it to {operator.max_parallelism}, or start without this "
            "state",
        )
    if target.parallelism > operator.max_parallelism:
        raise MaxParallelismChangedError(
            target.title,
            operator.max_parallelism,
            f"the program sets a parallelism of {target.parallelism}, so some subtasks would have "
            f"no key group. Set the parallelism to {operator.max_parallelism} or less",
        )


def _check_key_type(operator: OperatorMetadata, target: RestoreTarget) -> None:
    """Check the declared key types. An undeclared type fits any type."""
    wanted = target.key_type
    if wanted is None or wanted.is_pickled:
        return
    for name in table_descriptions(operator.states):
        stored = key_type_of(operator.states, name)
        if stored is not None and not stored.is_pickled:
            if describe_type(stored) != describe_type(wanted):
                raise KeyTypeChangedError(target.title, str(stored), str(wanted))
            return


def check_state_types(
    operator: str, stored: Iterable[StateDescription], wanted: Iterable[StateDescription]
) -> None:
    """Raise an error if a stored state of the same name has a different kind or type."""
    existing = {state.name: state for state in stored}
    changed = [
        (state.name, in_words(existing[state.name]), in_words(state))
        for state in wanted
        if state.name in existing and existing[state.name] != state
    ]
    if changed:
        raise StateTypeChangedError(operator, changed)


# The partitioning of the feedback of a loop chooses the head for a record that is under way.
_SHARING = {
    ShipStrategy.BROADCAST: Sharing.COPIES,
    ShipStrategy.GLOBAL: Sharing.ROUTED,
    ShipStrategy.HASH: Sharing.ROUTED,
    ShipStrategy.CUSTOM: Sharing.ROUTED,
}


def restore_targets(graph: JobGraph) -> tuple[RestoreTarget, ...]:
    """The operators of a new graph as targets."""
    key_types = key_types_of(graph)
    tails = {edge.tail for edge in graph.feedback_edges}
    sharing = {
        edge.target: _SHARING.get(edge.partitioning.strategy)
        for edge in graph.edges
        if edge.target in tails
    }
    return tuple(
        RestoreTarget(
            operator_id=node.operator_id,
            uid=node.uid,
            name=node.name,
            parallelism=vertex.parallelism,
            max_parallelism=node.max_parallelism,
            max_parallelism_is_set=node.max_parallelism_is_set,
            key_type=key_types.get(node.id),
            sharing=sharing.get(node.id),
        )
        for vertex in graph.vertices
        for node in (graph.nodes[operator] for operator in vertex.operators)
    )


def with_stored_max_parallelism(graph: JobGraph, plan: RestorePlan) -> JobGraph:
    """The graph with the maximum parallelisms of the checkpoint, where the program sets none."""
    nodes = {
        node.id: replace(node, max_parallelism=plan.assignments[node.operator_id].max_parallelism)
        if node.operator_id in plan.assignments
        else node
        for node in graph.nodes.values()
    }
    vertices = tuple(
        replace(vertex, max_parallelism=nodes[vertex.operators[0]].max_parallelism)
        for vertex in graph.vertices
    )
    return replace(graph, nodes=nodes, vertices=vertices)


def _listing(matched: tuple[str, ...], new: tuple[str, ...], missing: tuple[str, ...]) -> str:
    def listed(titles: tuple[str, ...]) -> str:
        return ", ".join(titles) if titles else "none"

    return (
        f"Operators with restored state: {listed(matched)}. "
        f"New operators, without state: {listed(new)}. "
        f"State that no operator of the job claims: {listed(missing)}."
    )
