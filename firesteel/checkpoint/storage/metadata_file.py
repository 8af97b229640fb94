"""The file ``_metadata``: one JSON document with a checksum. Reading it runs no code."""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
import re
from collections.abc import Callable
from typing import Any

from firesteel.checkpoint.metadata import (
    Ancestor,
    CheckpointMetadata,
    KeyedStateFile,
    OperatorMetadata,
    SnapshotType,
    SubtaskState,
)
from firesteel.checkpoint.payload import Payload
from firesteel.checkpoint.state_descriptions import StateDescription
from firesteel.checkpoint.storage.storage import (
    CorruptFileError,
    Storage,
    StorageError,
    open_storage,
)
from firesteel.errors import FiresteelError
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.state.changelog import Segment, SegmentFile
from firesteel.state.key_groups import KeyGroupRange
from firesteel.state.operator_state import OperatorState, Redistribution

SHARED_DIRECTORY = "shared"
_SHARED_PREFIX = f"../{SHARED_DIRECTORY}/"

Json = dict[str, Any]


class CorruptCheckpointError(CorruptFileError):
    """A checkpoint or savepoint is damaged."""


class CheckpointNotFoundError(FiresteelError, FileNotFoundError):
    """There is no checkpoint or savepoint at a location."""

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"no checkpoint or savepoint at {location}: {reason}")
        self.location = location
        self.reason = reason


class ForeignFileError(FiresteelError, ValueError):
    """A checkpoint refers to a file outside of its directories, which would not move with it."""

    def __init__(self, path: str, directory: str) -> None:
        super().__init__(
            f"{path} is neither in {directory} nor in the directory '{SHARED_DIRECTORY}' next to "
            "it, so a checkpoint there must not refer to it. State that was restored from a "
            "different directory must be written again before the first checkpoint"
        )
        self.path = path
        self.directory = directory


def relative_name(path: str, directory: Storage) -> str:
    """The name of a file in ``_metadata``: ``name``, or ``../shared/name``."""
    name = directory.name_of(path)
    if name is not None:
        return name
    shared = directory.parent.at(SHARED_DIRECTORY).name_of(path)
    if shared is None:
        raise ForeignFileError(path, directory.location)
    return _SHARED_PREFIX + shared


def full_location(name: str, directory: Storage) -> str:
    """The inverse of ``relative_name``. A name that leads elsewhere raises ValueError."""
    if name.startswith(_SHARED_PREFIX):
        shared = directory.parent.at(SHARED_DIRECTORY)
        return shared.at(name.removeprefix(_SHARED_PREFIX)).location
    return directory.at(name).location


def metadata_to_json(metadata: CheckpointMetadata, directory: Storage) -> Json:
    def relative(path: str) -> str:
        return relative_name(path, directory)

    return {
        "checkpoint_id": metadata.checkpoint_id,
        "type": metadata.type.value,
        "job_id": metadata.job_id,
        "job_name": metadata.job_name,
        "epoch": metadata.epoch,
        "trigger_time": metadata.trigger_time,
        "completion_time": metadata.completion_time,
        "lineage": [[one.job_id, one.checkpoint_id] for one in metadata.lineage],
        "run": metadata.run,
        "operators": [_operator(operator, relative) for operator in metadata.operators],
    }


def _operator(operator: OperatorMetadata, relative: Callable[[str], str]) -> Json:
    return {
        "operator_id": operator.operator_id,
        "uid": operator.uid,
        "name": operator.name,
        "parallelism": operator.parallelism,
        "max_parallelism": operator.max_parallelism,
        "states": [
            {"name": state.name, "kind": state.kind, "types": state.types}
            for state in operator.states
        ],
        "coordinator": _payload(operator.coordinator),
        "subtasks": [_subtask(subtask, relative) for subtask in operator.subtasks],
    }


def _subtask(state: SubtaskState, relative: Callable[[str], str]) -> Json:
    return {
        "finished": state.finished,
        "segments": [_segment(segment, relative) for segment in state.segments],
        "files": [_file(file, relative) for file in state.files],
        "operator_state": {
            name: {
                "redistribution": one.mode.value,
                "description": one.description,
                "elements": [_encode(element) for element in one.elements],
            }
            for name, one in state.operator_state.items()
        },
        "splits": [_payload(split) for split in state.splits],
        "writer_states": [_payload(writer) for writer in state.writer_states],
        "committables": [_payload(committable) for committable in state.committables],
        "opaque": _payload(state.opaque),
        "in_flight": [_segment(segment, relative) for segment in state.in_flight],
    }


def _segment(segment: Segment, relative: Callable[[str], str]) -> Json:
    return {
        "version": segment.version,
        "epoch": segment.epoch,
        "full": segment.full,
        "size": segment.size,
        "crc32": segment.checksum,
        **_content(segment.inline, segment.path, relative),
        "files": [
            {
                "name": file.name,
                "size": file.size,
                "crc32": file.checksum,
                **_content(file.inline, file.path, relative),
            }
            for file in segment.files
        ],
    }


def _content(inline: bytes | None, path: str | None, relative: Callable[[str], str]) -> Json:
    if path is not None:
        return {"file": relative(path)}
    return {} if inline is None else {"inline": _encode(inline)}


def _file(file: KeyedStateFile, relative: Callable[[str], str]) -> Json:
    return {
        "file": relative(file.path),
        "size": file.size,
        "crc32": file.checksum,
        "key_groups": [file.key_groups.start, file.key_groups.end],
        "entries": file.entries,
        "keys": file.keys,
        "pickled": sorted(file.pickled),
    }


def _payload(payload: Payload | None) -> Json | None:
    if payload is None:
        return None
    if payload.pickled is not None:
        # Unpickling runs code of the job's classes, so readers of metadata do not unpickle.
        return {"pickle": _encode(payload.pickled)}
    return {"json": payload.json}


def _encode(payload: bytes) -> str:
    return base64.b64encode(payload).decode("ascii")


def _decode(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def metadata_from_json(content: Json, directory: Storage) -> CheckpointMetadata:
    """The inverse of ``metadata_to_json``. Wrong content raises KeyError, TypeError or ValueError."""

    def locate(name: str) -> str:
        return full_location(name, directory)

    return CheckpointMetadata(
        checkpoint_id=int(content["checkpoint_id"]),
        type=SnapshotType(content["type"]),
        job_id=str(content["job_id"]),
        job_name=str(content["job_name"]),
        epoch=int(content["epoch"]),
        trigger_time=int(content["trigger_time"]),
        completion_time=int(content["completion_time"]),
        operators=tuple(_to_operator(operator, locate) for operator in content["operators"]),
        # Firesteel 0.1 wrote none.
        lineage=tuple(
            Ancestor(str(job_id), int(checkpoint_id))
            for job_id, checkpoint_id in content.get("lineage", ())
        ),
        run=int(content.get("run", 0)),
    )


def _to_operator(content: Json, locate: Callable[[str], str]) -> OperatorMetadata:
    operator = OperatorMetadata(
        operator_id=content["operator_id"],
        uid=content["uid"],
        name=content["name"],
        parallelism=content["parallelism"],
        max_parallelism=content["max_parallelism"],
        states=tuple(
            StateDescription(state["name"], state["kind"], dict(state["types"]))
            for state in content["states"]
        ),
        coordinator=_to_payload(content["coordinator"]),
        subtasks=tuple(_to_subtask(subtask, locate) for subtask in content["subtasks"]),
    )
    if len(operator.subtasks) != operator.parallelism:
        raise ValueError(
            f"{operator.title} has parallelism {operator.parallelism}, but "
            f"{len(operator.subtasks)} subtasks"
        )
    return operator


def _to_subtask(content: Json, locate: Callable[[str], str]) -> SubtaskState:
    return SubtaskState(
        finished=content["finished"],
        segments=tuple(_to_segment(segment, locate) for segment in content["segments"]),
        files=tuple(_to_file(file, locate) for file in content["files"]),
        operator_state={
            name: OperatorState(
                Redistribution(one["redistribution"]),
                tuple(map(_decode, one["elements"])),
                one["description"],
            )
            for name, one in content["operator_state"].items()
        },
        splits=_to_payloads(content["splits"]),
        writer_states=_to_payloads(content["writer_states"]),
        committables=_to_payloads(content["committables"]),
        opaque=_to_payload(content["opaque"]),
        # Firesteel 0.1 wrote none.
        in_flight=tuple(_to_segment(one, locate) for one in content.get("in_flight", ())),
    )


def _to_segment(content: Json, locate: Callable[[str], str]) -> Segment:
    return Segment(
        epoch=content["epoch"],
        full=content["full"],
        size=content["size"],
        checksum=content["crc32"],
        version=content["version"],
        inline=_to_inline(content),
        path=_to_path(content, locate),
        files=tuple(
            SegmentFile(
                name=_plain_name(file["name"]),
                size=file["size"],
                checksum=file["crc32"],
                inline=_to_inline(file),
                path=_to_path(file, locate),
            )
            for file in content["files"]
        ),
    )


def _plain_name(name: str) -> str:
    """Check a name. A restore writes a file of this name, which must not lead elsewhere."""
    if posixpath.basename(name) != name or name in ("", ".", ".."):
        raise ValueError(f"{name!r} is not the name of a file")
    return name


def _to_inline(content: Json) -> bytes | None:
    return _decode(content["inline"]) if "inline" in content else None


def _to_path(content: Json, locate: Callable[[str], str]) -> str | None:
    return locate(content["file"]) if "file" in content else None


def _to_file(content: Json, locate: Callable[[str], str]) -> KeyedStateFile:
    start, end = content["key_groups"]
    return KeyedStateFile(
        path=locate(content["file"]),
        size=content["size"],
        checksum=content["crc32"],
        key_groups=KeyGroupRange(start, end),
        entries=dict(content["entries"]),
        keys=dict(content["keys"]),
        pickled=frozenset(content["pickled"]),
    )


def _to_payloads(contents: list[Json]) -> tuple[Payload, ...]:
    return tuple(map(_to_present_payload, contents))


def _to_payload(content: Json | None) -> Payload | None:
    return None if content is None else _to_present_payload(content)


def _to_present_payload(content: Json) -> Payload:
    if "pickle" in content:
        return Payload(pickled=_decode(content["pickle"]))
    return Payload(json=content["json"])


def split_metadata_path(location: str, file_name: str) -> str:
    """The directory of a checkpoint, from the path of the directory or of the file in it."""
    stripped = location.rstrip("/")
    if posixpath.basename(stripped) == file_name:
        return posixpath.dirname(stripped)
    return stripped


METADATA_FILE = "_metadata"
FORMAT_VERSION = 1

# The head has a fixed form, so that the checksum covers the bytes that follow.
_HEAD = re.compile(
    rb'\{"format": "firesteel checkpoint", "version": ([0-9]{1,9}), "size": ([0-9]{1,18}), '
    rb'"sha256": "([0-9a-f]{64})", "checkpoint": '
)
_TAIL = b"}\n"


def encode_metadata(metadata: CheckpointMetadata, directory: Storage) -> bytes:
    """The content of the file ``_metadata`` in ``directory``."""
    body = json.dumps(metadata_to_json(metadata, directory), separators=(",", ":")).encode()
    digest = hashlib.sha256(body).hexdigest()
    head = (
        f'{{"format": "firesteel checkpoint", "version": {FORMAT_VERSION}, "size": {len(body)}, '
        f'"sha256": "{digest}", "checkpoint": '
    )
    return head.encode() + body + _TAIL


def decode_metadata(content: bytes, directory: Storage) -> CheckpointMetadata:
    """The inverse of ``encode_metadata``. Raises CorruptCheckpointError."""
    location = directory.location_of(METADATA_FILE)
    head = _HEAD.match(content)
    if head is None:
        raise CorruptCheckpointError(
            location,
            "it does not begin with the header of a checkpoint" if content else "it is empty",
        )
    version, size, digest = int(head[1]), int(head[2]), head[3].decode()
    if version != FORMAT_VERSION:
        raise CorruptCheckpointError(
            location,
            f"its format has version {version}, but this version of Firesteel reads "
            f"{FORMAT_VERSION}",
        )
    body = content[head.end() : head.end() + size]
    expected = head.end() + size + len(_TAIL)
    if len(content) != expected:
        raise CorruptCheckpointError(
            location, f"it should have {expected} bytes, but it has {len(content)}"
        )
    if hashlib.sha256(body).hexdigest() != digest or content[-len(_TAIL) :] != _TAIL:
        raise CorruptCheckpointError(location, "its checksum does not match")
    try:
        return metadata_from_json(json.loads(body), directory)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptCheckpointError(
            location, f"its content cannot be parsed ({type(error).__name__}: {error})"
        ) from error


def write_metadata(metadata: CheckpointMetadata, directory: Storage) -> str:
    """Write the file atomically, which completes the checkpoint. Returns its location."""
    directory.write(METADATA_FILE, encode_metadata(metadata, directory))
    return directory.location


def read_metadata(directory: Storage) -> CheckpointMetadata:
    """Read the metadata of the checkpoint or savepoint in a directory."""
    try:
        content = directory.read(METADATA_FILE)
    except StorageError as error:
        if not error.missing:
            raise
        raise CheckpointNotFoundError(
            directory.location, f"there is no file {METADATA_FILE}"
        ) from error
    return decode_metadata(content, directory)


def open_checkpoint(
    location: str, options: FileSystemOptions | None = None
) -> tuple[Storage, CheckpointMetadata]:
    """Open a checkpoint or savepoint by its directory, or by the file in it."""
    directory = open_storage(split_metadata_path(location, METADATA_FILE), options)
    return directory, read_metadata(directory)
