"""A summary of a savepoint or checkpoint, as text and JSON. No code of the job is executed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from firesteel.checkpoint.metadata import (
    CheckpointMetadata,
    OperatorMetadata,
    SnapshotType,
    SubtaskState,
)
from firesteel.checkpoint.rules.stats import readable_size
from firesteel.checkpoint.savepoints.plain_pickle import foreign_class
from firesteel.checkpoint.state_descriptions import describe_operator_states, in_words
from firesteel.checkpoint.storage.metadata_file import FORMAT_VERSION, open_checkpoint
from firesteel.checkpoint.storage.verification import find_defects
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.state.elements import pickles_in
from firesteel.state.operator_state import Redistribution

__all__ = [
    "OperatorSummary",
    "SnapshotSummary",
    "StateSummary",
    "describe_snapshot",
    "show_snapshot",
]

_UNKNOWN = None


@dataclass(frozen=True, slots=True)
class StateSummary:
    """A state. ``keys`` and ``entries`` are None if they are unknown without reading the state.

    ``needs_classes``: reading the state runs code of the job's classes. None if unknown.
    """

    name: str
    description: str
    keys: int | None = _UNKNOWN
    entries: int | None = _UNKNOWN
    elements: int | None = _UNKNOWN
    needs_classes: bool | None = _UNKNOWN


@dataclass(frozen=True, slots=True)
class OperatorSummary:
    operator_id: str
    uid: str | None
    name: str
    parallelism: int
    max_parallelism: int
    size: int
    subtask_sizes: tuple[int, ...]
    states: tuple[StateSummary, ...]
    splits: int
    committables: int
    has_coordinator_state: bool
    finished_subtasks: int


@dataclass(frozen=True, slots=True)
class SnapshotSummary:
    """Times are in milliseconds since 1970, sizes in bytes. ``defects``: missing or damaged files.

    ``format``: canonical or native. None for a checkpoint.
    """

    location: str
    type: str
    format_version: int
    checkpoint_id: int
    job_id: str
    job_name: str
    epoch: int
    trigger_time: int
    completion_time: int
    size: int
    files: int
    operators: tuple[OperatorSummary, ...]
    defects: tuple[str, ...] = ()
    format: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def to_text(self) -> str:
        """The text that the command line prints."""
        taken = datetime.fromtimestamp(self.completion_time / 1000, UTC)
        kind = f"native {self.type}" if self.format == "native" else self.type
        lines = [
            f"{kind.capitalize()} {self.checkpoint_id} of job '{self.job_name}' ({self.job_id})",
            f"  location:  {self.location}",
            f"  completed: {taken:%Y-%m-%d %H:%M:%S} UTC, epoch {self.epoch}",
            f"  size:      {readable_size(self.size)} in {_count(self.files, 'data file')}",
            f"  operators: {len(self.operators)}",
        ]
        for operator in self.operators:
            lines += ["", *_operator_lines(operator)]
        return "\n".join(lines)


def show_snapshot(location: str, options: FileSystemOptions | None = None) -> SnapshotSummary:
    """Describe the savepoint or checkpoint at ``location``, and check the sizes of its files."""
    directory, metadata = open_checkpoint(location, options)
    defects = find_defects(metadata, directory, deep=False)
    summary = describe_snapshot(metadata, directory.location)
    return replace(summary, defects=tuple(map(str, defects)))


def describe_snapshot(metadata: CheckpointMetadata, location: str) -> SnapshotSummary:
    return SnapshotSummary(
        location=location,
        type=metadata.type.value,
        format_version=FORMAT_VERSION,
        checkpoint_id=metadata.checkpoint_id,
        job_id=metadata.job_id,
        job_name=metadata.job_name,
        epoch=metadata.epoch,
        trigger_time=metadata.trigger_time,
        completion_time=metadata.completion_time,
        size=metadata.size,
        files=len(metadata.files()),
        operators=tuple(map(_operator, metadata.operators)),
        format=_format(metadata),
    )


def _format(metadata: CheckpointMetadata) -> str | None:
    if metadata.type is not SnapshotType.SAVEPOINT:
        return None
    return "native" if metadata.is_native else "canonical"


def _operator(operator: OperatorMetadata) -> OperatorSummary:
    return OperatorSummary(
        operator_id=operator.operator_id,
        uid=operator.uid,
        name=operator.name,
        parallelism=operator.parallelism,
        max_parallelism=operator.max_parallelism,
        size=operator.size,
        subtask_sizes=tuple(subtask.size for subtask in operator.subtasks),
        states=tuple(_states(operator)),
        splits=sum(len(subtask.splits) for subtask in operator.subtasks),
        committables=sum(len(subtask.committables) for subtask in operator.subtasks),
        has_coordinator_state=operator.coordinator is not None,
        finished_subtasks=sum(subtask.finished for subtask in operator.subtasks),
    )


def _states(operator: OperatorMetadata) -> list[StateSummary]:
    lists = {name for subtask in operator.subtasks for name in subtask.operator_state}
    summaries = [
        _keyed_state(state.name, in_words(state), operator.subtasks)
        for state in operator.states
        if state.name not in lists
    ]
    return summaries + [_operator_state(name, operator.subtasks) for name in sorted(lists)]


def _keyed_state(name: str, description: str, subtasks: tuple[SubtaskState, ...]) -> StateSummary:
    if any(subtask.segments for subtask in subtasks):
        # The numbers are unknown until the changelog is applied.
        return StateSummary(name, description)
    files = [file for subtask in subtasks for file in subtask.files]
    return StateSummary(
        name,
        description,
        keys=sum(file.keys.get(name, 0) for file in files),
        entries=sum(file.entries.get(name, 0) for file in files),
        needs_classes=any(name in file.pickled for file in files),
    )


def _operator_state(name: str, subtasks: tuple[SubtaskState, ...]) -> StateSummary:
    found = [one.operator_state[name] for one in subtasks if name in one.operator_state]
    (described,) = describe_operator_states({name: found[0]})
    pickles = [
        pickle
        for state in found
        for element in state.elements
        for pickle in pickles_in(element, pair=state.mode is Redistribution.BROADCAST)
    ]
    return StateSummary(
        name,
        in_words(described),
        elements=sum(len(state.elements) for state in found),
        needs_classes=any(foreign_class(pickle) is not None for pickle in pickles),
    )


def _operator_lines(operator: OperatorSummary) -> list[str]:
    uid = f"uid '{operator.uid}'" if operator.uid is not None else "no uid"
    subtasks = f"parallelism {operator.parallelism} of at most {operator.max_parallelism}"
    lines = [
        f"  '{operator.name}': {uid}, id {operator.operator_id}",
        f"    {subtasks}, {readable_size(operator.size)}",
    ]
    for state in operator.states:
        counts = [
            _count(state.keys, "key"),
            _count(state.entries, "entry") if state.entries != state.keys else "",
            _count(state.elements, "element"),
            "needs classes of the job" if state.needs_classes else "",
        ]
        details = ", ".join(filter(None, counts))
        lines.append(
            f"    '{state.name}': {state.description}" + (f": {details}" if details else "")
        )
    if operator.splits:
        lines.append(f"    splits of the source: {operator.splits}")
    if operator.committables:
        lines.append(f"    pending committables: {operator.committables}")
    if operator.has_coordinator_state:
        lines.append("    state of the source coordinator")
    if operator.finished_subtasks:
        lines.append(f"    finished subtasks: {operator.finished_subtasks}")
    return lines


def _count(number: int | None, unit: str) -> str:
    if number is None:
        return ""
    plural = f"{unit[:-1]}ies" if unit.endswith("y") and unit != "key" else f"{unit}s"
    return f"{number:,} {unit if number == 1 else plural}"
