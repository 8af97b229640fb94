"""Epochs, segments and crashes: the state comes back as it was confirmed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.master.state_ledger import StateLedger
from firesteel.state.changelog import CorruptSegmentError, Segment, SegmentStore
from firesteel.state.hashmap.keyed_state import HashMapKeyedState
from firesteel.task.messages import SubtaskAck, VertexMetrics

_NODE = 7


class Job:
    """The way of an operator's state: sealed in the task, kept by the ledger, restored."""

    def __init__(self, directory: str | None, inline_threshold: int) -> None:
        self.store = SegmentStore(directory, inline_threshold)
        self.ledger = StateLedger()
        self.state = HashMapKeyedState()
        self.epoch = 0

    def end_epoch(self) -> None:
        self.epoch += 1
        segment = self.state.seal(self.epoch, self.store)
        ack = SubtaskAck(
            vertex=1,
            subtask=0,
            segments={} if segment is None else {_NODE: segment},
            whole={},
            gate=None,
            sources={},
            committables={},
            finished=False,
            watermark=0,
            metrics=VertexMetrics(),
            user_metrics=None,
        )
        self.ledger.record(ack)
        self.state.confirm()

    def segments(self) -> tuple[Segment, ...]:
        handle = self.ledger.handle(1, 0).operators.get(_NODE)
        return () if handle is None else handle.segments

    def crash(self, *, same_process: bool) -> None:
        if not same_process:
            self.state = HashMapKeyedState()
        self.state.restore(self.segments(), self.store)


_tables = st.sampled_from(["counts", "names"])
_keys = st.integers(0, 6)
_operations = st.lists(
    st.one_of(
        st.tuples(st.just("put"), _tables, _keys, st.text(max_size=20)),
        st.tuples(st.just("remove"), _tables, _keys),
        st.tuples(st.just("epoch")),
        st.tuples(st.just("crash"), st.booleans()),
    ),
    max_size=60,
)


@given(_operations, st.sampled_from([0, 30, 200, 1 << 16]), st.booleans())
@settings(deadline=None)
def test_any_history_equals_a_plain_dictionary(
    operations: list[tuple[Any, ...]], inline_threshold: int, has_directory: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        job = Job(directory if has_directory else None, inline_threshold)
        now: dict[str, dict[int, str]] = {"counts": {}, "names": {}}
        confirmed = {name: dict(entries) for name, entries in now.items()}
        for name, *arguments in operations:
            if name == "put":
                table, key, value = arguments
                job.state.table(table).put(key, value)
                now[table][key] = value
            elif name == "remove":
                table, key = arguments
                job.state.table(table).remove(key)
                now[table].pop(key, None)
            elif name == "epoch":
                job.end_epoch()
                confirmed = {name: dict(entries) for name, entries in now.items()}
            else:
                job.crash(same_process=arguments[0])
                now = {name: dict(entries) for name, entries in confirmed.items()}
            kept = job.state.snapshot()
            assert {name: kept.get(name, {}) for name in now} == now
            files = {Path(s.path) for s in job.segments() if s.path is not None}
            # What a full segment replaced is gone.
            assert set(Path(directory).iterdir()) == files


def _grow(job: Job, epochs: int, entries: int, keys: int) -> None:
    for epoch in range(epochs):
        for entry in range(entries):
            number = epoch * entries + entry
            job.state.table("t").put(number % keys, f"value {number}")
        job.end_epoch()


def test_the_log_stays_within_a_multiple_of_the_state(tmp_path: Path) -> None:
    job = Job(str(tmp_path), inline_threshold=100)
    _grow(job, epochs=500, entries=7, keys=50)
    segments = job.segments()
    full = [segment for segment in segments if segment.full]
    assert [segment.full for segment in segments[1:]] == [False] * (len(segments) - 1)
    (first,) = full
    log = sum(segment.size for segment in segments if not segment.full)
    assert log <= max(100, 2 * first.size)


def test_each_change_is_written_about_one_and_a_half_times(tmp_path: Path) -> None:
    written = 0
    job = Job(str(tmp_path), inline_threshold=100)
    write = job.store.write

    def count(payload: bytes, **options: Any) -> Segment:
        nonlocal written
        written += len(payload)
        return write(payload, **options)

    job.store.write = count  # type: ignore[method-assign]
    changed = 0
    for number in range(2_000):
        job.state.table("t").put(number % 400, "x" * 40)
        if number % 20 == 19:
            before = written
            job.end_epoch()
            if not job.segments()[-1].full:
                changed += written - before
    assert written <= 2.5 * changed


def test_what_travels_in_every_control_row_is_bounded(tmp_path: Path) -> None:
    job = Job(str(tmp_path), inline_threshold=500)
    for number in range(2_000):
        job.state.table("t").put(number, "x" * 50)
    job.end_epoch()
    # A large state, and epochs that change little: the log may grow long, in files.
    largest = 0
    for epoch in range(300):
        job.state.table("t").put(epoch, "y")
        job.end_epoch()
        largest = max(largest, sum(len(s.inline or b"") for s in job.segments()))
    assert 0 < largest <= 500
    job.crash(same_process=False)
    assert job.state.table("t").get(299) == "y"
    assert len(job.state.table("t")) == 2_000


def test_without_a_directory_everything_is_inline() -> None:
    job = Job(None, inline_threshold=10)
    _grow(job, epochs=20, entries=5, keys=30)
    assert all(segment.inline is not None for segment in job.segments())


def test_an_epoch_without_changes_writes_nothing() -> None:
    job = Job(None, inline_threshold=10)
    assert job.state.seal(1, job.store) is None


def test_a_damaged_file_is_noticed(tmp_path: Path) -> None:
    job = Job(str(tmp_path), inline_threshold=0)
    job.state.table("t").put("a", 1)
    job.end_epoch()
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"!" + file.read_bytes()[1:])
    with pytest.raises(CorruptSegmentError, match="damaged"):
        job.crash(same_process=False)
    with pytest.raises(CorruptSegmentError, match="no content"):
        job.store.read(Segment(epoch=1, full=True, size=3))


def test_entries_can_be_added_to_the_base() -> None:
    state = HashMapKeyedState()
    state.load({"t": {"a": 1}})
    state.load({"t": {"b": 2}, "u": {"c": 3}})
    assert state.snapshot() == {"t": {"a": 1, "b": 2}, "u": {"c": 3}}
    assert state.seal(1, SegmentStore(None, 0)) is None
