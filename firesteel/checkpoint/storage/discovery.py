"""Finds the newest intact checkpoint."""

from __future__ import annotations

import logging
import posixpath
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from firesteel.checkpoint.metadata import CheckpointMetadata
from firesteel.checkpoint.rules.completed_checkpoint import CompletedCheckpoint
from firesteel.checkpoint.rules.lineage import newest_first
from firesteel.checkpoint.storage.metadata_file import (
    METADATA_FILE,
    CheckpointNotFoundError,
    CorruptCheckpointError,
    read_metadata,
    split_metadata_path,
)
from firesteel.checkpoint.storage.storage import CorruptFileError, Storage, open_storage
from firesteel.checkpoint.storage.verification import verify
from firesteel.filesystems.file_systems import FileSystemOptions

__all__ = ["FoundCheckpoint", "find_checkpoint", "find_latest_checkpoint", "latest_run"]

_log = logging.getLogger("firesteel")
_DIRECTORY = re.compile(r"([^/]+)/chk-(\d+)")
# Threads that read metadata of different runs.
_READERS = 8
# A root contains directories of jobs, and these contain checkpoints.
_CHECKPOINT = re.compile(rf"(?:[^/]+/)?chk-(\d+)/{METADATA_FILE}")


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint to restore.

    ``skipped``: errors of newer checkpoints, which are damaged.
    ``older``: earlier checkpoints, newest first. They are not verified.
    """

    checkpoint: CompletedCheckpoint
    directory: Storage
    skipped: tuple[CorruptFileError, ...] = ()
    older: tuple[CompletedCheckpoint, ...] = ()

    @property
    def message(self) -> str:
        """The message for the log and the user."""
        sentences = [f"Restoring from {self.checkpoint.title}."]
        if self.skipped:
            newer = "a newer one is" if len(self.skipped) == 1 else "newer ones are"
            reasons = "; ".join(map(str, self.skipped))
            sentences.append(f"It is not the newest: {newer} damaged ({reasons}).")
        return " ".join(sentences)


def find_checkpoint(
    location: str,
    options: FileSystemOptions | None = None,
    *,
    job_name: str | None = None,
    deep: bool = True,
) -> FoundCheckpoint:
    """Find a checkpoint or savepoint at a location, or the newest intact checkpoint below it.

    A checkpoint at the location itself must be intact. ``deep``: read every file. Otherwise only
    sizes are compared.
    """
    directory = open_storage(split_metadata_path(location, METADATA_FILE), options)
    if not directory.exists(METADATA_FILE):
        return find_latest_checkpoint(directory, job_name=job_name, deep=deep)
    metadata = read_metadata(directory)
    verify(metadata, directory, deep=deep)
    return FoundCheckpoint(_completed(metadata, directory), directory)


def find_latest_checkpoint(
    root: Storage, *, job_name: str | None = None, deep: bool = True
) -> FoundCheckpoint:
    """Find the newest intact checkpoint in the directory of a job, or of several jobs.

    ``job_name``: ignore checkpoints of other jobs. Savepoints are not found: the user names their
    location.
    """
    names = [status.path for status in root.list_files() if _CHECKPOINT.fullmatch(status.path)]
    found: dict[str, tuple[CompletedCheckpoint, Storage]] = {}
    unreadable: list[tuple[Storage, CorruptFileError]] = []
    other_jobs: set[str] = set()
    for name in names:
        directory = root.at(posixpath.dirname(name))
        try:
            metadata = read_metadata(directory)
        except CorruptCheckpointError as error:
            unreadable.append((directory, error))
            continue
        if job_name is None or metadata.job_name == job_name:
            found[directory.location] = _completed(metadata, directory), directory
        else:
            other_jobs.add(directory.parent.location)
    unreadable = [one for one in unreadable if one[0].parent.location not in other_jobs]
    damaged: list[CorruptFileError] = []
    remaining = list(newest_first(checkpoint for checkpoint, _ in found.values()))
    while remaining:
        checkpoint = remaining.pop(0)
        directory = found[checkpoint.location or ""][1]
        try:
            verify(checkpoint.metadata, directory, deep=deep)
        except CorruptCheckpointError as error:
            damaged.append(error)
            continue
        for where, reason in unreadable:
            if where.parent != directory.parent:
                _log.warning("%s. It may be newer than the checkpoint that is restored.", reason)
            elif _number(where) > _number(directory):
                damaged.append(reason)
        result = FoundCheckpoint(checkpoint, directory, tuple(damaged), tuple(remaining))
        if damaged:
            _log.warning("%s", result.message)
        return result
    raise _nothing(root, job_name, [*damaged, *(error for _, error in unreadable)])


def latest_run(root: Storage, job_name: str) -> int:
    """The highest number among the runs of a job that have left checkpoints, or 0."""
    by_run: dict[str, list[tuple[int, str]]] = {}
    # The directories of all jobs may have very many files, so they are not searched.
    for name in root.find("*/chk-*"):
        found = _DIRECTORY.fullmatch(name)
        if found is not None:
            by_run.setdefault(found[1], []).append((int(found[2]), name))
    with ThreadPoolExecutor(_READERS) as readers:
        runs = readers.map(lambda numbered: _run_of(root, numbered, job_name), by_run.values())
        return max(runs, default=0)


def _run_of(root: Storage, checkpoints: list[tuple[int, str]], job_name: str) -> int:
    """The number of a run by its newest checkpoint that can be read. Other jobs count as 0."""
    for _, name in sorted(checkpoints, reverse=True):
        try:
            metadata = read_metadata(root.at(name))
        except (CorruptFileError, CheckpointNotFoundError):
            continue
        return metadata.run if metadata.job_name == job_name else 0
    return 0


def _number(directory: Storage) -> int:
    return int(directory.name.rpartition("-")[2])


def _completed(metadata: CheckpointMetadata, directory: Storage) -> CompletedCheckpoint:
    return CompletedCheckpoint(metadata, directory.location, is_owned=False)


def _nothing(
    root: Storage, job_name: str | None, damaged: list[CorruptFileError]
) -> CheckpointNotFoundError | CorruptCheckpointError:
    if damaged:
        reasons = "; ".join(map(str, damaged))
        return CorruptCheckpointError(root.location, f"no checkpoint in it is intact: {reasons}")
    whose = "" if job_name is None else f" of a job '{job_name}'"
    return CheckpointNotFoundError(
        root.location,
        f"there is neither a file {METADATA_FILE} nor a directory chk-<number>{whose} in it",
    )
