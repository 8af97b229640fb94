"""The file ``_metadata``: one JSON document with a checksum over all that matters. Reading it runs no code."""

from __future__ import annotations

import hashlib
import json
import re

from firesteel.checkpoint.errors import (
    CheckpointNotFoundError,
    CorruptCheckpointError,
    StorageError,
)
from firesteel.checkpoint.file_systems import FileSystemOptions
from firesteel.checkpoint.metadata import CheckpointMetadata
from firesteel.checkpoint.metadata_json import (
    metadata_from_json,
    metadata_to_json,
    split_metadata_path,
)
from firesteel.checkpoint.storage import Storage, open_storage

__all__ = [
    "FORMAT_VERSION",
    "METADATA_FILE",
    "decode_metadata",
    "encode_metadata",
    "open_checkpoint",
    "read_metadata",
    "write_metadata",
]

METADATA_FILE = "_metadata"
FORMAT_VERSION = 1

# The head has one form only, so the checksum can cover the very bytes behind it.
_HEAD = re.compile(
    rb'\{"format": "firesteel checkpoint", "version": ([0-9]{1,9}), "size": ([0-9]{1,18}), '
    rb'"sha256": "([0-9a-f]{64})", "checkpoint": '
)
_TAIL = b"}\n"


def encode_metadata(metadata: CheckpointMetadata, directory: Storage) -> bytes:
    """The content of the file in ``directory``."""
    body = json.dumps(metadata_to_json(metadata, directory), separators=(",", ":")).encode()
    digest = hashlib.sha256(body).hexdigest()
    head = (
        f'{{"format": "firesteel checkpoint", "version": {FORMAT_VERSION}, "size": {len(body)}, '
        f'"sha256": "{digest}", "checkpoint": '
    )
    return head.encode() + body + _TAIL


def decode_metadata(content: bytes, directory: Storage) -> CheckpointMetadata:
    """CorruptCheckpointError names the file and what is wrong with it."""
    location = directory.location_of(METADATA_FILE)
    head = _HEAD.match(content)
    if head is None:
        raise CorruptCheckpointError(
            location,
            "it does not begin like a checkpoint of Firesteel" if content else "it is empty",
        )
    version, size, digest = int(head[1]), int(head[2]), head[3].decode()
    if version != FORMAT_VERSION:
        raise CorruptCheckpointError(
            location,
            f"its format has version {version}, but this Firesteel reads version {FORMAT_VERSION}",
        )
    body = content[head.end() : head.end() + size]
    expected = head.end() + size + len(_TAIL)
    if len(content) != expected:
        raise CorruptCheckpointError(
            location, f"it should have {expected} bytes, but it has {len(content)}"
        )
    if hashlib.sha256(body).hexdigest() != digest or content[-len(_TAIL) :] != _TAIL:
        raise CorruptCheckpointError(location, "its checksum is wrong")
    try:
        return metadata_from_json(json.loads(body), directory)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptCheckpointError(
            location, f"its content is not understood ({type(error).__name__}: {error})"
        ) from error


def write_metadata(metadata: CheckpointMetadata, directory: Storage) -> str:
    """Write the file atomically: from here on the checkpoint exists. Returns its location."""
    directory.write(METADATA_FILE, encode_metadata(metadata, directory))
    return directory.location


def read_metadata(directory: Storage) -> CheckpointMetadata:
    """The checkpoint or savepoint in a directory."""
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
    """What a user named: a directory of a checkpoint or savepoint, or the file in it."""
    directory = open_storage(split_metadata_path(location, METADATA_FILE), options)
    return directory, read_metadata(directory)
