"""ScriptedSource, a source that plays records and events."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firesteel.connectors.base import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
)
from firesteel.errors import FiresteelError
from firesteel.filesystems.scratch import scratch_of_process
from firesteel.stability import public_evolving


@public_evolving
class ScriptedCrashError(FiresteelError, RuntimeError):
    """The error that a Crash raises. Not in PyFlink.

    >>> from firesteel.errors import UserFunctionError
    >>> from firesteel.testing import Crash, ScriptedSource
    >>> source = ScriptedSource([1, Crash("power failure")])
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    >>> try:
    ...     list(stream.execute_and_collect())
    ... except UserFunctionError as error:
    ...     print(error.cause)
    ScriptedCrashError
    """


@public_evolving
@dataclass(frozen=True, slots=True)
class Pause:
    """Makes a read of a ScriptedSource return nothing. Not in PyFlink.

    Args:
        seconds: The minimum time until the next read.

    >>> from firesteel.testing import JobHarness, Pause, ScriptedSource
    >>> source = ScriptedSource([1, Pause(5.0), 2])
    >>> harness = JobHarness(
    ...     lambda env: env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    ... )
    >>> harness.run()
    >>> harness.collected, harness.now_millis() >= 5000
    ([1, 2], True)
    """

    seconds: float = 0.0


@public_evolving
@dataclass(frozen=True, slots=True)
class Crash:
    """Raises a ScriptedCrashError when a ScriptedSource first reaches it. Not in PyFlink.

    Args:
        message: The text of the error.

    >>> from firesteel.testing import Crash, ScriptedSource
    >>> env = env.enable_checkpointing(1000)
    >>> source = ScriptedSource([1, Crash(), 2])
    >>> stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    >>> list(stream.execute_and_collect())
    [1, 2]
    """

    message: str = "scripted crash"


@public_evolving
@dataclass(frozen=True, slots=True)
class KillProcess:
    """Kills its process with SIGKILL when a ScriptedSource first reaches it. Not in PyFlink.

    Use it on Spark. In a harness it kills the process of the test.

    >>> from firesteel.testing import KillProcess, ScriptedSource
    >>> ScriptedSource([1, KillProcess(), 2]).records()
    [1, 2]
    """


@public_evolving
@dataclass(frozen=True, slots=True)
class Timed:
    """A record with an event timestamp. Not in PyFlink.

    Either all records of a script are Timed, or none are.

    Args:
        value: The record.
        timestamp: The event timestamp in milliseconds.

    >>> from firesteel.testing import ScriptedSource, Timed
    >>> class ShowTimestamp(ProcessFunction):
    ...     def process_element(self, value, context):
    ...         yield value, context.timestamp()
    >>> source = ScriptedSource([Timed("a", 1000)])
    >>> strategy = WatermarkStrategy.for_monotonous_timestamps()
    >>> stream = env.from_source(source, strategy, "events").process(ShowTimestamp())
    >>> list(stream.execute_and_collect())
    [('a', 1000)]
    """

    value: Any
    timestamp: int


@public_evolving
class ScriptedSource(Source):
    """Plays a script in one subtask: records, pauses, crashes. Not in PyFlink.

    Each Crash and KillProcess happens once. A file in the directory records it across attempts and
    processes, until ``reset``.

    Args:
        script: Records and marks: Pause, Crash, KillProcess. A position is an index in the script.
        type_info: The type of the records. The default is any Python object.
        bounded: False creates a source that waits after the end of the script.
        directory: The directory of the marks. The default is a temporary directory, which is
            deleted with the source.

    >>> from firesteel.testing import Crash, JobHarness, ScriptedSource
    >>> source = ScriptedSource(["a", "b", Crash(), "c"])
    >>> harness = JobHarness(
    ...     lambda env: env.from_source(source, WatermarkStrategy.no_watermarks(), "letters"),
    ...     records_per_epoch=1,
    ...     checkpoint_every=1,
    ... )
    >>> harness.run()
    >>> harness.collected
    ['a', 'b', 'c']
    """

    def __init__(
        self,
        script: Iterable[Any],
        *,
        type_info: Any = None,
        bounded: bool = True,
        directory: str | Path | None = None,
    ) -> None:
        self._script = tuple(script)
        self._type_info = type_info
        self._bounded = bounded
        _check_timestamps(self._script)
        if directory is None:
            self._directory = tempfile.mkdtemp(
                prefix="script-", dir=scratch_of_process("testing").path
            )
            weakref.finalize(self, _remove, self._directory, os.getpid())
        else:
            self._directory = str(directory)

    def records(self) -> list[Any]:
        """Return the records of the script, without marks.

        >>> from firesteel.testing import Crash, ScriptedSource
        >>> ScriptedSource(["a", Crash(), "b"]).records()
        ['a', 'b']
        """
        return [_value(item) for item in self._script if not _is_mark(item)]

    def reset(self) -> None:
        """Let crashes and kills happen again.

        >>> from firesteel.testing import Crash, ScriptedSource
        >>> ScriptedSource(["a", Crash(), "b"]).reset()
        """
        for mark in Path(self._directory).glob("mark-*"):
            mark.unlink()

    def get_boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self._bounded else Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return _OneSplit(self._script, discovered=bool(state))

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _ScriptReader(self._script, Path(self._directory), ends=self._bounded)

    def get_produced_type(self) -> Any:
        return self._type_info

    def __repr__(self) -> str:
        return f"ScriptedSource({len(self._script)} steps)"


class _OneSplit(SplitEnumerator):
    def __init__(self, script: Sequence[Any], *, discovered: bool) -> None:
        self._length = len(script)
        self._discovered = discovered

    def discover_splits(self) -> Sequence[SourceSplit]:
        if self._discovered:
            return []
        self._discovered = True
        return [SourceSplit("script", position=0)]

    def is_complete(self) -> bool:
        return self._discovered

    def snapshot_state(self) -> Any:
        return self._discovered


class _ScriptReader(SourceReader):
    def __init__(self, script: Sequence[Any], directory: Path, *, ends: bool) -> None:
        self._script = script
        self._directory = directory
        self._ends = ends
        self._split: SourceSplit | None = None
        self._next = 0
        self._delay = 0.0
        self._timestamps: list[int] | None = None

    def add_splits(self, splits: Sequence[SourceSplit]) -> None:
        (self._split,) = splits
        self._next = self._split.position

    def read(self, limit: int) -> list[Any]:
        self._timestamps = None
        if self._split is None:
            return []
        if self._pass_marks():
            return []
        stop = self._next
        while stop < len(self._script) and not _is_mark(self._script[stop]):
            if stop - self._next == limit:
                break
            stop += 1
        items = self._script[self._next : stop]
        self._next = stop
        if items and isinstance(items[0], Timed):
            self._timestamps = [item.timestamp for item in items]
        return [_value(item) for item in items]

    def _pass_marks(self) -> bool:
        """Perform the marks at the current position. Returns True if one of them is a pause."""
        while self._next < len(self._script):
            mark = self._script[self._next]
            if isinstance(mark, Pause):
                self._next += 1
                self._delay = mark.seconds
                return True
            if isinstance(mark, Crash):
                if self._is_first(self._next):
                    raise ScriptedCrashError(mark.message)
            elif isinstance(mark, KillProcess):
                if self._is_first(self._next):
                    os.kill(os.getpid(), signal.SIGKILL)
            else:
                return False
            self._next += 1
        self._delay = 0.1
        return False

    def _is_first(self, index: int) -> bool:
        """Return True if no process has reached this mark before."""
        try:
            (self._directory / f"mark-{index}").open("x").close()
        except FileExistsError:
            return False
        return True

    def snapshot_splits(self) -> list[SourceSplit]:
        if self._split is None or (self._ends and self._next >= len(self._script)):
            return []
        return [self._split.at(self._next)]

    def next_read_delay(self) -> float:
        return self._delay

    def current_split(self) -> str | None:
        return None if self._split is None else self._split.split_id

    def timestamps(self) -> list[int] | None:
        return self._timestamps


def _is_mark(item: Any) -> bool:
    return isinstance(item, Pause | Crash | KillProcess)


def _value(item: Any) -> Any:
    return item.value if isinstance(item, Timed) else item


def _check_timestamps(script: Sequence[Any]) -> None:
    timed = [isinstance(item, Timed) for item in script if not _is_mark(item)]
    if any(timed) and not all(timed):
        raise ValueError(
            "The script of a ScriptedSource mixes Timed records with others. Make all records "
            "Timed, or none."
        )


def _remove(directory: str, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(directory, ignore_errors=True)
