"""ListSink, a sink whose committed records a test can read."""

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
from firesteel.filesystems.scratch import scratch_of_process
from firesteel.stability import public_evolving
from firesteel.usercode import pickling

_PENDING, _COMMITTED = ".pending", ".committed"


@public_evolving
class ListSink(Sink):
    """Keeps committed records for a test. Not in PyFlink.

    The records are in files of a directory, so the sink works in a harness and on local Spark.

    Args:
        directory: The directory. The default is a temporary directory, which is deleted with the
            sink.

    >>> from firesteel.testing import ListSink
    >>> results = ListSink()
    >>> sink = env.from_collection([1, 2, 3]).map(lambda number: number * 10).sink_to(results)
    >>> result = env.execute()
    >>> results.values()
    [10, 20, 30]
    """

    def __init__(self, directory: str | Path | None = None) -> None:
        if directory is None:
            scratch = scratch_of_process("testing").path
            self._directory = Path(tempfile.mkdtemp(prefix="list-", dir=scratch))
            weakref.finalize(self, _remove, self._directory, os.getpid())
        else:
            self._directory = Path(directory)
            self._directory.mkdir(parents=True, exist_ok=True)

    def values(self) -> list[Any]:
        """Return the committed records.

        The records of a subtask are in order. The order between subtasks is by flush. After a
        restart with a different parallelism, new records follow the old ones.
        """
        return [value for _, _, values in self._committed() for value in values]

    def values_by_subtask(self) -> dict[int, list[Any]]:
        """Return the committed records of each subtask, in order.

        >>> from firesteel.testing import ListSink
        >>> results = ListSink()
        >>> sink = env.from_collection([1, 2]).sink_to(results)
        >>> result = env.execute()
        >>> results.values_by_subtask()
        {0: [1, 2]}
        """
        by_subtask: dict[int, list[Any]] = {}
        for _, subtask, values in self._committed():
            by_subtask.setdefault(subtask, []).extend(values)
        return dict(sorted(by_subtask.items()))

    def clear(self) -> None:
        """Delete all records, committed or not.

        >>> from firesteel.testing import ListSink
        >>> results = ListSink()
        >>> sink = env.from_collection([1, 2]).sink_to(results)
        >>> result = env.execute()
        >>> results.clear()
        >>> results.values()
        []
        """
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
    """Writes one file per flush, so that a repeated epoch has its own files.

    ``state`` has the names of files that are not yet in a committable, or lists of such names.
    """

    def __init__(self, directory: Path, subtask: int, state: Any) -> None:
        self._directory = directory
        self._subtask = subtask
        self._values: list[Any] = []
        # Numbers continue after those of all existing files, of this subtask and of others.
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
