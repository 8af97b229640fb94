"""A sink whose committed records a test can read."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firesteel.connectors.base import Committer, Sink, SinkWriter, WriteContext, WriterContext
from firesteel.usercode import pickling

_PENDING, _COMMITTED = ".pending", ".committed"


class ListSink(Sink):
    """Keeps records in files under ``directory``; only what is committed counts, exactly once.

    It works wherever driver and tasks see that directory: in a harness, and on local Spark.
    Without a directory the sink makes a temporary one, which goes with it.

    >>> from firesteel.datastream.connectors.base import WriteContext, WriterContext
    >>> sink = ListSink()
    >>> writer = sink.create_writer(WriterContext(subtask_index=0, parallelism=1, job_id="job"))
    >>> writer.write("a", WriteContext())
    >>> committables = writer.prepare_commit(end_of_input=True)
    >>> sink.values()
    []
    >>> sink.create_committer().commit(committables)
    >>> sink.values()
    ['a']
    """

    def __init__(self, directory: str | Path | None = None) -> None:
        if directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="firesteel-list-"))
            weakref.finalize(self, _remove, self._directory, os.getpid())
        else:
            self._directory = Path(directory)
            self._directory.mkdir(parents=True, exist_ok=True)

    def values(self) -> list[Any]:
        """The committed records: in order within each subtask, subtasks in turn.

        Also after a restart with another parallelism: what was written later comes later.
        """
        return [value for _, _, values in self._committed() for value in values]

    def values_by_subtask(self) -> dict[int, list[Any]]:
        """The committed records of each subtask that wrote any, in order."""
        by_subtask: dict[int, list[Any]] = {}
        for _, subtask, values in self._committed():
            by_subtask.setdefault(subtask, []).extend(values)
        return dict(sorted(by_subtask.items()))

    def clear(self) -> None:
        """Forget everything, committed or not."""
        for file in self._directory.iterdir():
            file.unlink()

    def _committed(self) -> list[tuple[int, int, list[Any]]]:
        found = []
        for file in self._directory.glob(f"*{_COMMITTED}"):
            number, subtask, _ = file.name.split("-", 2)
            found.append((int(number), int(subtask), file))
        found.sort(key=lambda entry: entry[:2])
        return [
            (number, subtask, pickling.loads(file.read_bytes())) for number, subtask, file in found
        ]

    def create_writer(self, context: WriterContext, state: Any = None) -> SinkWriter:
        return _ListWriter(self._directory, context.subtask_index, state)

    def create_committer(self) -> Committer:
        return _ListCommitter(self._directory)

    def __repr__(self) -> str:
        return f"ListSink({str(self._directory)!r})"


class _ListWriter(SinkWriter):
    """Every flush makes a file of its own, so that a retried epoch has its own files too.

    ``state`` are the names of files that no committable has named yet, or lists of them.
    """

    def __init__(self, directory: Path, subtask: int, state: Any) -> None:
        self._directory = directory
        self._subtask = subtask
        self._values: list[Any] = []
        # Behind everything that was written before, by whomever.
        numbers = (int(file.name.split("-", 1)[0]) for file in directory.iterdir())
        self._number = max(numbers, default=-1) + 1
        self._written: list[str] = []
        for written in state or ():
            self._written += [written] if isinstance(written, str) else written

    def write(self, value: Any, context: WriteContext) -> None:
        self._values.append(value)

    def flush(self, end_of_input: bool) -> None:
        if not self._values:
            return
        name = f"{self._number}-{self._subtask}-{uuid.uuid4().hex}"
        (self._directory / f"{name}{_PENDING}").write_bytes(pickling.dumps(self._values))
        self._written.append(name)
        self._number += 1
        self._values = []

    def prepare_commit(self, end_of_input: bool) -> list[Any]:
        self.flush(end_of_input)
        prepared, self._written = self._written, []
        return prepared

    def snapshot_state(self) -> Any:
        return list(self._written)


class _ListCommitter(Committer):
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def commit(self, committables: Sequence[Any]) -> None:
        for name in committables:
            pending = self._directory / f"{name}{_PENDING}"
            if pending.exists():
                pending.rename(self._directory / f"{name}{_COMMITTED}")


def _remove(directory: Path, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(directory, ignore_errors=True)
