"""Snapshot of one subtask with 1,000,000 keys, without Spark: pause and bytes written."""

import random
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from benchmarks.cases import BY_NAME
from benchmarks.measure import Arguments, Figures, report, report_skipped
from benchmarks.sections.section import Section
from benchmarks.text import below
from firesteel.errors import ConfigurationError
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.backend_factory import StateBackendSettings, create_keyed_state
from firesteel.state.changelog import Segment, SegmentStore

_KEYS = 1_000_000
_CHANGED = 0.01
_SYNC_GOAL, _BYTES_GOAL = 100.0, 0.05
_INLINE_THRESHOLD = 64 * 1024
# Interval of empty epochs, which take over the snapshot that was written in the background.
_POLL_SECONDS = 0.05
_LONGEST_SECONDS = 60.0
# About the shortest possible epoch. RocksDB flushes during it.
_EPOCH_SECONDS = 0.25

_BACKENDS: tuple[Literal["hashmap", "rocksdb"], ...] = ("hashmap", "rocksdb")


class SubtaskState:
    """The keyed state of a subtask, epoch by epoch as in a slot."""

    def __init__(self, kind: Literal["hashmap", "rocksdb"], directory: Path) -> None:
        self._settings = StateBackendSettings(kind, (str(directory / "local"),))
        segments = directory / "segments"
        segments.mkdir()
        self._store = SegmentStore(str(segments), _INLINE_THRESHOLD)
        self.backend = self._create()
        self._epoch = 0
        self.longest_sync = 0.0

    def _create(self) -> KeyedStateBackend:
        return create_keyed_state(self._settings, None, 128)

    def fill(self, keys: int) -> tuple[Segment, ...]:
        """Create all keys in one epoch and write them as changes, not as part of a snapshot."""
        self.put(range(keys))
        log = self.end_epoch()
        self.longest_sync = 0.0
        return log

    def restore(self, log: tuple[Segment, ...]) -> float:
        """Restore the state from the log and return the duration in seconds."""
        self.backend.close()
        self.backend = self._create()
        begin = time.perf_counter()
        self.backend.restore(log, self._store)
        return time.perf_counter() - begin

    def put(self, keys: Iterable[int]) -> None:
        put = self.backend.value_table("state").put
        for key in keys:
            put(key, (key, self._epoch, f"customer-{key}"))

    def end_epoch(self) -> tuple[Segment, ...]:
        """Return the written segments. This is the synchronous part, in which processing pauses."""
        self._epoch += 1
        begin = time.perf_counter()
        segments = self.backend.seal(self._epoch, self._store)
        self.backend.confirm()
        self.longest_sync = max(self.longest_sync, time.perf_counter() - begin)
        return segments

    def full_segment(self) -> Segment:
        """Wait for the full snapshot that is in progress or starts with the end of this epoch."""
        deadline = time.monotonic() + _LONGEST_SECONDS
        while time.monotonic() < deadline:
            full = [segment for segment in self.end_epoch() if segment.full]
            if full:
                return full[0]
            time.sleep(_POLL_SECONDS)
        raise TimeoutError(f"no full snapshot in {_LONGEST_SECONDS:.0f} s")


def measure(arguments: Arguments) -> None:
    keys = arguments.records_of(BY_NAME["reduce_1m"], _KEYS)
    for kind in _BACKENDS:
        with tempfile.TemporaryDirectory() as directory:
            try:
                measure_backend(kind, keys, Path(directory))
            except ConfigurationError as error:
                report_skipped("snapshot", kind, str(error))


def measure_backend(kind: Literal["hashmap", "rocksdb"], keys: int, directory: Path) -> None:
    state = SubtaskState(kind, directory)
    chosen = random.Random(1)
    changed = [chosen.sample(range(keys), int(keys * _CHANGED)) for _ in range(2)]
    try:
        # Both states consist of the log only, so a full snapshot starts at the end of an epoch.
        # Many new keys are in RocksDB's write buffer, and restored keys are in files.
        log = state.fill(keys)
        state.put(changed[0])
        time.sleep(_EPOCH_SECONDS)
        state.full_segment()
        restore_seconds = state.restore(log)
        state.put(changed[0])
        full = state.full_segment()
        background = state.backend.take_background_seconds()
        state.put(changed[1])
        written = sum(segment.own_size() for segment in state.end_epoch())
    finally:
        state.backend.close()
    report(
        section="snapshot",
        backend=kind,
        keys=keys,
        sync_milliseconds=state.longest_sync * 1_000,
        full_bytes=full.size,
        background_seconds=background,
        changed_bytes=written,
        restore_seconds=restore_seconds,
    )


def row(figures: Figures) -> list[str]:
    share = figures["changed_bytes"] / figures["full_bytes"]
    sync = figures["sync_milliseconds"]
    return [
        f"{figures['backend']}, {figures['keys']:,} keys",
        below(sync, _SYNC_GOAL, f"{sync:.0f} ms"),
        f"{figures['background_seconds']:.1f} s",
        f"{figures['full_bytes'] / 1e6:,.1f} MB",
        below(share, _BYTES_GOAL, f"{share:.1%}"),
        f"{figures['restore_seconds']:.1f} s",
    ]


SECTION = Section(
    "snapshot",
    ("snapshot of a subtask", "synchronous", "background", "full", "1 % changed", "restore"),
    row,
    measure,
)
