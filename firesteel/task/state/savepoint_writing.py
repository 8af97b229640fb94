"""Savepoints that a slot writes: its keyed state at the end of an epoch, while it works on.

The slot freezes its state, and a thread writes the files. The acks of the slot report the progress.
A savepoint that is given up leaves no file.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from firesteel.checkpoint.metadata import KeyedStateFile
from firesteel.checkpoint.savepoints.keyed_state_files import write_frozen_state
from firesteel.checkpoint.savepoints.savepoint import delete_unfinished
from firesteel.checkpoint.state_descriptions import describe_tables
from firesteel.checkpoint.storage.storage import Storage, StorageError, open_storage
from firesteel.common.typeinfo import TypeInformation
from firesteel.filesystems.file_systems import FileSystemOptions
from firesteel.protocol.messages import SavepointFiles, SavepointOrder, SavepointProgress
from firesteel.state.changelog import Segment, SegmentFile, SegmentStore
from firesteel.state.frozen_state import FrozenFiles, FrozenState

_log = logging.getLogger("firesteel")

_CHUNK_BYTES = 4 << 20
# The slot waits this long for the thread of a savepoint that it gives up.
_PATIENCE_SECONDS = 5.0

Join = Callable[[float], None]
"""Waits until work has ended, at most for some seconds."""

Spawn = Callable[[Iterator[None]], Join]
"""Does work step by step, in a thread of its own."""


def in_thread(work: Iterator[None]) -> Join:
    def run() -> None:
        for _ in work:
            pass

    thread = threading.Thread(target=run, name="firesteel-savepoint", daemon=True)
    thread.start()
    return thread.join


@dataclass(frozen=True, slots=True)
class FrozenOperator:
    """The keyed state of one operator subtask at the end of an epoch."""

    vertex: int
    subtask: int
    node: int
    operator_id: str
    key_type: TypeInformation | None
    state: FrozenState | FrozenFiles


class SlotSavepoints:
    """The savepoints that a slot writes. All methods belong to the thread of the slot.

    spawn: replaces the thread that writes.
    """

    def __init__(
        self,
        options: FileSystemOptions | None,
        *,
        compress: bool = False,
        spawn: Spawn = in_thread,
    ) -> None:
        self._options = options
        self._compress = compress
        self._spawn = spawn
        self._running: dict[int, _Writing] = {}
        # Savepoints whose end the last ack has reported.
        self._reported: set[int] = set()

    def begin(self, order: SavepointOrder, operators: Iterable[FrozenOperator]) -> None:
        """Write the frozen state. If the job stops with the savepoint, wait for it."""
        writing = _Writing(order, list(operators), self._options, compress=self._compress)
        self._running[order.checkpoint_id] = writing
        if order.waits:
            for _ in writing.work():
                pass
        else:
            writing.join = self._spawn(writing.work())

    @property
    def is_busy(self) -> bool:
        return bool(self._running.keys() - self._reported)

    @property
    def has_news(self) -> bool:
        """A savepoint has ended, and the driver does not know."""
        return any(
            writing.has_ended
            for checkpoint_id, writing in self._running.items()
            if checkpoint_id not in self._reported
        )

    def progress(self) -> dict[int, SavepointProgress]:
        """Report all savepoints, for an ack."""
        found = {}
        for checkpoint_id, writing in self._running.items():
            found[checkpoint_id] = writing.progress()
            if writing.has_ended:
                writing.release()
                self._reported.add(checkpoint_id)
        return found

    def confirm(self) -> None:
        """The driver has the last ack. Forget the savepoints whose end it has reported."""
        for checkpoint_id in self._reported:
            self._running.pop(checkpoint_id, None)
        self._reported.clear()

    def abort(self, checkpoint_ids: Iterable[int]) -> None:
        """Give up savepoints that the driver does not want any longer, with their directories."""
        for checkpoint_id in checkpoint_ids:
            writing = self._running.pop(checkpoint_id, None)
            self._reported.discard(checkpoint_id)
            if writing is not None:
                self._give_up(writing, with_directory=True)

    def abandon(self) -> None:
        """Give up everything, because the slot ends or starts over.

        A new attempt may write to the same directories, so only files of this slot are deleted.
        Files whose end was reported belong to the driver.
        """
        for checkpoint_id, writing in self._running.items():
            if checkpoint_id not in self._reported:
                self._give_up(writing, with_directory=False)
        self._running.clear()
        self._reported.clear()

    def _give_up(self, writing: _Writing, *, with_directory: bool) -> None:
        cleaning = writing.give_up(with_directory=with_directory)
        if cleaning is not None:
            self._spawn(cleaning)
        # State may be closed after this, and the thread must not read it any longer.
        writing.join(_PATIENCE_SECONDS)
        writing.release()


def _dont_wait(seconds: float) -> None:
    """The work is done where it was begun."""


class NativeFiles(SegmentStore):
    """Writes copies of a backend's files into the directory of a savepoint.

    check: called between chunks. It raises an exception if the files are no longer wanted.
    names: receives the names of the files.
    """

    def __init__(
        self, directory: Storage, prefix: str, check: Callable[[], None], names: list[str]
    ) -> None:
        super().__init__(None, 0)
        self._savepoint = directory
        self._prefix = prefix
        self._check = check
        self._names = names

    def write_file(self, source: Path) -> SegmentFile:
        name = f"{self._prefix}-{source.name}"
        self._names.append(name)
        facts = self._savepoint.write(name, self._chunks(source))
        path = self._savepoint.location_of(name)
        return SegmentFile(source.name, facts.size, facts.checksum, path=path)

    def _chunks(self, source: Path) -> Iterator[bytes]:
        with source.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                self._check()
                yield chunk


class _GivenUpError(Exception):
    """Ends the work on a savepoint that is not wanted any longer."""


class _Writing:
    """One savepoint. A thread does the work, and the thread of the slot does the rest."""

    def __init__(
        self,
        order: SavepointOrder,
        operators: list[FrozenOperator],
        options: FileSystemOptions | None,
        *,
        compress: bool,
    ) -> None:
        self._order = order
        self._operators = operators
        self._options = options
        self._compress = compress
        # Two attempts of one task may write at the same time.
        self._attempt = uuid.uuid4().hex[:12]
        self._deadline = time.monotonic() + order.seconds
        self._lock = threading.Lock()
        self._given_up = False
        self._with_directory = False
        self._ended = threading.Event()
        self._files: list[SavepointFiles] = []
        self._names: list[str] = []
        self._error: str | None = None
        self._is_released = False
        #: Waits for the thread.
        self.join: Join = _dont_wait

    # In the thread

    def work(self) -> Iterator[None]:
        """Write all files, one per step."""
        error: str | None = None
        try:
            for operator in self._operators:
                state = operator.state
                if isinstance(state, FrozenFiles):
                    segment = state.copy(self._store(operator), self._check)
                    self._note(operator, (), segment)
                    yield
                    continue
                files: list[KeyedStateFile] = []
                for file in self._write(operator, state):
                    files.append(file)
                    yield
                self._note(operator, files)
        except _GivenUpError:
            error = "it was given up"
        except GeneratorExit:
            # The process ends.
            raise
        except BaseException as caught:
            # The driver learns of it with the next ack. The job continues.
            error = f"{type(caught).__name__}: {caught}"
            _log.warning("savepoint %d: %s", self._order.checkpoint_id, error)
            if not isinstance(caught, Exception):
                # The slot itself is interrupted.
                self._end(error)
                raise
        self._end(error)

    def _prefix(self, operator: FrozenOperator) -> str:
        return f"state-{operator.operator_id}-{operator.subtask}-{self._attempt}"

    def _store(self, operator: FrozenOperator) -> SegmentStore:
        directory = open_storage(self._order.target, self._options)
        return NativeFiles(directory, self._prefix(operator), self._check, self._names)

    def _write(self, operator: FrozenOperator, state: FrozenState) -> Iterator[KeyedStateFile]:
        directory = open_storage(self._order.target, self._options)
        for file in write_frozen_state(
            state,
            directory,
            self._prefix(operator),
            key_type=operator.key_type,
            compress=self._compress,
            check=self._check,
        ):
            self._names.append(file.path.rpartition("/")[2])
            yield file

    def _note(
        self,
        operator: FrozenOperator,
        files: Sequence[KeyedStateFile],
        segment: Segment | None = None,
    ) -> None:
        if files or segment is not None:
            states = describe_tables(operator.state.descriptions, operator.key_type)
            self._files.append(
                SavepointFiles(
                    operator.vertex, operator.subtask, operator.node, tuple(files), states, segment
                )
            )

    def _check(self) -> None:
        if self._given_up:
            raise _GivenUpError
        if time.monotonic() > self._deadline:
            raise TimeoutError(f"the slot has not written it within {self._order.seconds:g} s")

    def _end(self, error: str | None) -> None:
        with self._lock:
            self._error = error
            is_unwanted = self._given_up or error is not None
            self._ended.set()
        if is_unwanted:
            self._delete()

    def _delete(self) -> None:
        directory = open_storage(self._order.target, self._options)
        for name in self._names:
            try:
                directory.delete(name)
            except StorageError as error:
                _log.warning("savepoint %d: %s", self._order.checkpoint_id, error)
        if self._with_directory:
            delete_unfinished(directory)

    # In the slot

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def progress(self) -> SavepointProgress:
        if not self.has_ended:
            return SavepointProgress()
        if self._error is not None:
            return SavepointProgress(error=self._error)
        return SavepointProgress(tuple(self._files))

    def give_up(self, *, with_directory: bool) -> Iterator[None] | None:
        """Stop the work. Return the work of deleting the files, if the thread has ended."""
        with self._lock:
            self._given_up = True
            self._with_directory = with_directory
            if not self.has_ended:
                return None
        return self._cleaning()

    def _cleaning(self) -> Iterator[None]:
        self._delete()
        yield

    def release(self) -> None:
        """Let the backends forget the frozen state."""
        if self._is_released:
            return
        self._is_released = True
        for operator in self._operators:
            operator.state.release()
        self._operators = []
