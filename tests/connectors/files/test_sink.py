from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common.serialization import Encoder
from firesteel.common.typeinfo import Types
from firesteel.connectors.files.writer import FileWriter
from firesteel.datastream.connectors.base import WriteContext, WriterContext
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    OutputFileConfig,
    RollingPolicy,
)
from firesteel.errors import FiresteelError, UserFunctionError
from tests.thoroughness import examples

CONTEXT = WriterContext(0, 1, "job")
NOON = WriteContext(
    processing_time=int(datetime(2024, 3, 9, 12, 30, tzinfo=UTC).timestamp() * 1000)
)


def _builder(path, encoder=None):
    return FileSink.for_row_format(
        str(path), encoder or Encoder.simple_string_encoder()
    ).with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())


def _files(path, hidden=False):
    return sorted(
        str(file.relative_to(path))
        for file in Path(path).rglob("*")
        if file.is_file() and file.name.startswith(".") == hidden
    )


def _contents(path):
    return sorted(
        line for name in _files(path) for line in (Path(path) / name).read_text().splitlines()
    )


def _write(writer, *values, context=NOON):
    writer.write_batch(list(values), None, context)


class ByFirstLetter(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"letter={element[0]}"


class RollOn(RollingPolicy):
    def __init__(self, element):
        self._element = element

    def should_roll_on_event(self, part_file, element):
        assert part_file.get_bucket_id() == ""
        return element == self._element


def test_files_appear_complete_when_committed(tmp_path, driver):
    sink = cloudpickle.loads(cloudpickle.dumps(_builder(tmp_path).build()))
    writer = sink.create_writer(CONTEXT)
    _write(writer, "a", "b")
    writer.flush(end_of_input=False)
    (hidden,) = _files(tmp_path, hidden=True)
    assert hidden.startswith(".part-")
    assert ".inprogress." in hidden
    assert (tmp_path / hidden).read_text() == "a\nb\n"

    assert writer.prepare_commit(end_of_input=False) == []
    _write(writer, "c")
    committables = driver.through_json(writer.prepare_commit(end_of_input=True))
    writer.close()
    assert _files(tmp_path) == []

    committer = sink.create_committer()
    committer.commit(committables)
    committer.commit(committables)  # as after a failure
    (name,) = _files(tmp_path)
    assert hidden.startswith(f".{name}.inprogress.")
    assert name.rsplit("-", 1)[1] == "0"
    assert (tmp_path / name).read_text() == "a\nb\nc\n"
    assert _files(tmp_path, hidden=True) == []


def test_names(tmp_path):
    config = OutputFileConfig.builder().with_part_prefix("out").with_part_suffix(".txt").build()
    assert (config.get_part_prefix(), config.get_part_suffix()) == ("out", ".txt")
    sink = _builder(tmp_path).with_output_file_config(config).build()
    writer = sink.create_writer(CONTEXT)
    _write(writer, "a")
    sink.create_committer().commit(writer.prepare_commit(end_of_input=True))
    (name,) = _files(tmp_path)
    assert name.startswith("out-")
    assert name.endswith("-0.txt")


def test_size_rolls_at_the_record_in_batches_too(tmp_path):
    policy = RollingPolicy.default_rolling_policy(part_size=9)
    sink = _builder(tmp_path).with_rolling_policy(policy).build()
    writer = sink.create_writer(CONTEXT)
    _write(writer, *("1234" for _ in range(7)))
    sink.create_committer().commit(writer.prepare_commit(end_of_input=True))
    # A file rolls once it is larger than 9 bytes: two records of five bytes are.
    sizes = sorted((tmp_path / name).stat().st_size for name in _files(tmp_path))
    assert sizes == [5, 10, 10, 10]


def test_time_rolls_when_flushed(tmp_path, clock):
    config = (
        _builder(tmp_path)
        .with_rolling_policy(RollingPolicy.default_rolling_policy(1000, 60_000, 20_000))
        .with_bucket_check_interval(1000)
        .build()
        ._config
    )
    writer = FileWriter(config, clock=clock)
    assert writer.next_flush_delay() is None
    _write(writer, "a")
    assert writer.next_flush_delay() == pytest.approx(1.0)
    for _ in range(5):
        clock.now += 10
        _write(writer, "a")
        writer.flush(end_of_input=False)
    assert writer.prepare_commit(end_of_input=False) == []
    clock.now += 10
    writer.flush(end_of_input=False)  # 60 s old
    assert len(writer.prepare_commit(end_of_input=False)) == 1
    _write(writer, "b")
    clock.now += 19
    writer.flush(end_of_input=False)
    assert writer.prepare_commit(end_of_input=False) == []
    clock.now += 1
    writer.flush(end_of_input=False)  # 20 s without a record
    assert len(writer.prepare_commit(end_of_input=False)) == 1
    assert writer.next_flush_delay() is None


def test_checkpoints_roll(tmp_path):
    policy = RollingPolicy.on_checkpoint_rolling_policy()
    writer = _builder(tmp_path).with_rolling_policy(policy).build().create_writer(CONTEXT)
    for expected in (1, 1, 0):
        if expected:
            _write(writer, "a")
        assert len(writer.prepare_commit(end_of_input=False)) == expected


def test_a_policy_of_the_users(tmp_path):
    sink = _builder(tmp_path).with_rolling_policy(RollOn("new")).build()
    writer = cloudpickle.loads(cloudpickle.dumps(sink)).create_writer(CONTEXT)
    _write(writer, "a", "new", "b", "new")
    sink.create_committer().commit(writer.prepare_commit(end_of_input=True))
    contents = {(tmp_path / name).read_text() for name in _files(tmp_path)}
    assert contents == {"a\n", "new\nb\n", "new\n"}


def test_a_bucket_assigner_of_the_users(tmp_path):
    sink = _builder(tmp_path).with_bucket_assigner(ByFirstLetter()).build()
    writer = cloudpickle.loads(cloudpickle.dumps(sink)).create_writer(CONTEXT)
    _write(writer, "apple", "bean", "acorn")
    sink.create_committer().commit(writer.prepare_commit(end_of_input=True))
    contents = {os.path.dirname(name): (tmp_path / name).read_text() for name in _files(tmp_path)}
    assert contents == {"letter=a": "apple\nacorn\n", "letter=b": "bean\n"}


def test_the_assigner_sees_each_records_timestamp(tmp_path):
    class ByTimestamp(BucketAssigner):
        def get_bucket_id(self, element, context):
            return str(context.timestamp())

    writer = _builder(tmp_path).with_bucket_assigner(ByTimestamp()).build().create_writer(CONTEXT)
    writer.write_batch(["a", "b"], [1, 2], WriteContext())
    assert sorted(os.listdir(tmp_path)) == ["1", "2"]


@pytest.mark.parametrize("bucket", ["../out", "/etc", "a/../../b"])
def test_buckets_stay_below_the_base_path(tmp_path, bucket):
    class Escaping(BucketAssigner):
        def get_bucket_id(self, element, context):
            return bucket

    writer = _builder(tmp_path).with_bucket_assigner(Escaping()).build().create_writer(CONTEXT)
    with pytest.raises(UserFunctionError, match=r"is outside of(.|\n)*Escaping.get_bucket_id"):
        _write(writer, "a")


@pytest.mark.parametrize(
    ("pattern", "zone", "expected"),
    [
        ("yyyy-MM-dd--HH", "UTC", "2024-03-09--12"),
        ("yyyy-MM-dd--HH", "America/Los_Angeles", "2024-03-09--04"),
        ("yyyy-MM-dd HH:mm", "GMT+05:30", "2024-03-09 18:00"),
        ("'year='yyyy/'month='M", "Z", "year=2024/month=3"),
        (
            "yy MMM MMMM E EEEE h a D ss SSS ''",
            "UTC",
            "24 Mar March Sat Saturday 12 PM 69 00 000 '",
        ),
    ],
)
def test_buckets_by_time(tmp_path, pattern, zone, expected):
    assigner = BucketAssigner.date_time_bucket_assigner(pattern, zone)
    assert cloudpickle.loads(cloudpickle.dumps(assigner)).get_bucket_id("x", NOON) == expected


def test_the_default_buckets_are_hours_of_the_systems_zone(tmp_path):
    sink = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()
    _write(sink.create_writer(CONTEXT), "a")
    local = datetime.fromtimestamp(NOON.current_processing_time() / 1000)  # noqa: DTZ006
    assert os.listdir(tmp_path) == [local.strftime("%Y-%m-%d--%H")]


@pytest.mark.parametrize(
    ("pattern", "zone"), [("yyyy-'open", None), ("qq", None), ("yyyy", "Mars")]
)
def test_wrong_date_patterns(pattern, zone):
    with pytest.raises(ValueError, match=r"quote|not supported|Mars"):
        BucketAssigner.date_time_bucket_assigner(pattern, zone)


class LengthPrefixed(Encoder):
    def encode(self, element):
        data = element.encode()
        return len(data).to_bytes(2, "big") + data


def test_an_encoder_of_the_users(tmp_path):
    sink = _builder(tmp_path, LengthPrefixed()).build()
    writer = sink.create_writer(CONTEXT)
    _write(writer, "ab", "c")
    writer.write("d", NOON)
    sink.create_committer().commit(writer.prepare_commit(end_of_input=True))
    (name,) = _files(tmp_path)
    assert (tmp_path / name).read_bytes() == b"\0\2ab\0\1c\0\1d"


@pytest.mark.parametrize("charset", ["UTF-8", "ISO-8859-1", "UTF-16BE"])
def test_batches_and_single_records_write_the_same(tmp_path, charset):
    encoder = Encoder.simple_string_encoder(charset)
    sink = _builder(tmp_path, encoder).build()
    writer = sink.create_writer(CONTEXT)
    for values in (["é", "b"], ["é", 1, None, 2.5]):
        _write(writer, *values)
        for value in values:
            writer.write(value, NOON)
    sink.create_committer().commit(writer.prepare_commit(end_of_input=True))
    (name,) = _files(tmp_path)
    text = (tmp_path / name).read_bytes().decode(charset)
    assert text == "é\nb\n" * 2 + "é\n1\nNone\n2.5\n" * 2


def test_the_streams_type_reaches_the_encoder(tmp_path):
    sink = _builder(tmp_path).build().with_input_type(Types.BOOLEAN())
    writer = sink.create_writer(CONTEXT)
    _write(writer, True)
    sink.create_committer().commit(writer.prepare_commit(end_of_input=True))
    assert _contents(tmp_path) == ["true"]


def test_a_dead_writer_that_still_writes_does_no_harm(tmp_path, driver):
    sink = _builder(tmp_path).build()
    zombie = sink.create_writer(CONTEXT)
    _write(zombie, "a")
    zombie.prepare_commit(end_of_input=False)
    state = driver.through_json(zombie.snapshot_state())
    _write(zombie, "lost")
    zombie.flush(end_of_input=False)

    writer = sink.create_writer(CONTEXT, state)
    _write(zombie, "lost too")
    zombie.flush(end_of_input=False)
    _write(writer, "b")
    sink.create_committer().commit(driver.through_json(writer.prepare_commit(end_of_input=True)))
    zombie.prepare_commit(end_of_input=True)
    zombie.close()
    assert _contents(tmp_path) == ["a", "b"]
    assert _files(tmp_path, hidden=True) == []


def test_several_snapshots_merge_into_one_writer(tmp_path, driver):
    sink = _builder(tmp_path).build()
    states = []
    for value in ("a", "b"):
        writer = sink.create_writer(CONTEXT)
        _write(writer, value)
        states.append(driver.through_json(writer.snapshot_state()))
        writer.close()
    writer = sink.create_writer(CONTEXT, states)
    _write(writer, "c")
    sink.create_committer().commit(writer.prepare_commit(end_of_input=True))
    assert _contents(tmp_path) == ["a", "b", "c"]
    assert _files(tmp_path, hidden=True) == []


def test_a_missing_file_is_a_clear_error(tmp_path, caplog):
    sink = _builder(tmp_path).build()
    writer = sink.create_writer(CONTEXT)
    _write(writer, "a")
    state = writer.snapshot_state()
    committables = writer.prepare_commit(end_of_input=True)
    os.truncate(committables[0]["in_progress"], 1)
    with pytest.raises(FileNotFoundError, match="has only 1") as caught:
        sink.create_writer(CONTEXT, state)
    assert isinstance(caught.value, FiresteelError)
    with pytest.raises(FileNotFoundError, match="has only 1 bytes"):
        sink.create_committer().commit(committables)
    os.unlink(committables[0]["in_progress"])
    # It may have been committed before, and consumed.
    sink.create_committer().commit(committables)
    assert committables[0]["final"] in caplog.text
    caplog.clear()
    restored = sink.create_writer(CONTEXT, state)
    sink.create_committer().commit(restored.prepare_commit(end_of_input=False))
    assert committables[0]["final"] in caplog.text
    assert _files(tmp_path, hidden=True) == []


def _restored_from(sink, state, number):
    """The records of a job that is restored, writes one record, completes a checkpoint, and dies."""
    writer = sink.create_writer(WriterContext(0, 1, f"job-{number}"), state)
    _write(writer, f"new-{number}")
    sink.create_committer().commit(writer.prepare_commit(end_of_input=True))
    return _contents(sink._config.base_path)


def test_one_snapshot_restores_hundreds_of_times(tmp_path, driver):
    sink = _builder(tmp_path).build()
    writer = sink.create_writer(CONTEXT)
    _write(writer, "a", "b")
    writer.prepare_commit(end_of_input=False)
    state = driver.through_json(writer.snapshot_state())
    _write(writer, "lost")
    writer.flush(end_of_input=False)
    for number in range(200):
        contents = _restored_from(sink, state, number)
        assert [line for line in contents if not line.startswith("new")] == ["a", "b"]
        assert len(contents) == number + 3


def test_snapshots_of_one_file_restore_in_any_order(tmp_path, driver):
    """Each restored job makes the bytes visible that none has made visible before it."""
    names = OutputFileConfig.builder().with_part_suffix(".txt").build()
    sink = _builder(tmp_path).with_output_file_config(names).build()
    writer = sink.create_writer(CONTEXT)
    states = []
    for value in "abcd":
        _write(writer, value)
        writer.prepare_commit(end_of_input=False)
        states.append(driver.through_json(writer.snapshot_state()))
    writer.close()
    for number, (restored, visible) in enumerate([(0, "a"), (2, "abc"), (1, "abc"), (3, "abcd")]):
        contents = _restored_from(sink, states[restored], number)
        assert [line for line in contents if not line.startswith("new")] == [*visible]
    assert _files(tmp_path, hidden=True) == []
    stem = Path(states[0]["in_progress"][0]["final"]).name.removesuffix(".txt")
    parts = {f"{stem}.txt": "a\n", f"{stem}-2.txt": "b\nc\n", f"{stem}-6.txt": "d\n"}
    assert {name: (tmp_path / name).read_text() for name in parts} == parts


def test_a_job_that_continues_and_a_job_from_its_savepoint_do_not_disturb_each_other(
    tmp_path, driver
):
    sink = _builder(tmp_path).build()
    writer = sink.create_writer(CONTEXT)
    _write(writer, "a")
    writer.prepare_commit(end_of_input=False)
    savepoint = driver.through_json(writer.snapshot_state())
    _write(writer, "b")
    assert _restored_from(sink, savepoint, 0) == ["a", "new-0"]
    _write(writer, "c")
    sink.create_committer().commit(writer.prepare_commit(end_of_input=True))
    assert _contents(tmp_path) == ["a", "b", "c", "new-0"]
    assert _restored_from(sink, savepoint, 1) == ["a", "b", "c", "new-0", "new-1"]


class _PowerFailureError(Exception):
    pass


@pytest.mark.parametrize("step", range(8))
@pytest.mark.parametrize("consumed", [False, True])
def test_a_commit_that_breaks_off_is_completed(tmp_path, driver, monkeypatch, step, consumed):
    """A reader may take a finished file away before the commit is repeated."""
    sink = _builder(tmp_path).build()
    writer = sink.create_writer(CONTEXT)
    states = []
    for value in "ab":
        _write(writer, value)
        writer.prepare_commit(end_of_input=False)
        states.append(driver.through_json(writer.snapshot_state()))
    _write(writer, "lost")
    writer.flush(end_of_input=False)
    _restored_from(sink, states[0], 0)
    restored = sink.create_writer(WriterContext(0, 1, "other"), states[1])
    committables = restored.prepare_commit(end_of_input=False)
    calls = iter(range(100))

    def breaking(function):
        def call(*arguments):
            if next(calls) == step:
                raise _PowerFailureError
            return function(*arguments)

        return call

    with monkeypatch.context() as patch:
        for name in ("fsync", "rename", "replace", "unlink"):
            patch.setattr(os, name, breaking(getattr(os, name)))
        with contextlib.suppress(_PowerFailureError):
            sink.create_committer().commit(committables)
    seen = _contents(tmp_path)
    if consumed:
        for name in _files(tmp_path):
            (tmp_path / name).unlink()
    sink.create_committer().commit(committables)
    sink.create_committer().commit(committables)
    seen = seen + _contents(tmp_path) if consumed else _contents(tmp_path)
    assert sorted(seen) == ["a", "b", "new-0"]


def test_close_removes_what_nothing_refers_to(tmp_path):
    writer = _builder(tmp_path).with_rolling_policy(RollOn("b")).build().create_writer(CONTEXT)
    _write(writer, "a", "b")
    assert len(_files(tmp_path, hidden=True)) == 2
    writer.close()
    assert _files(tmp_path, hidden=True) == []


def test_builder_errors(tmp_path):
    with pytest.raises(TypeError, match="BulkWriterFactory"):
        FileSink.for_bulk_format(str(tmp_path), None)  # type: ignore[arg-type]  # refused
    with pytest.raises(TypeError, match="Encoder"):
        FileSink.for_row_format(str(tmp_path), "text")  # type: ignore[arg-type]  # refused
    assert _builder(tmp_path).disable_compact().build() is not None


class _Point(NamedTuple):
    """A point to return to: the writer's state, the committables to repeat, the next record."""

    state: Any
    committables: list[Any]
    next: int
    number: int = 0


class _Model:
    """One subtask over checkpoints, savepoints, epochs, crashes and jobs, as the runtime drives it."""

    def __init__(self, path, policy, driver):
        builder = _builder(path)
        if policy == "buckets":
            builder.with_bucket_assigner(ByFirstLetter())
            policy = RollingPolicy.default_rolling_policy(part_size=12)
        self.sink = builder.with_rolling_policy(policy).build()
        self.json = driver.through_json
        self.job = self.attempt = self.number = 0
        self.start = _Point(None, [], 0)
        # The two newest completed checkpoints of this job, those of earlier jobs, and savepoints.
        self.checkpoints: list[_Point] = []
        self.retained: list[_Point] = []
        self.savepoints: list[_Point] = []
        self.newest_savepoint = 0
        # The places to which a job has returned.
        self.returns: list[int] = []
        self.begin(self.start)

    def begin(self, point, abandoned=()):
        context = WriterContext(0, 1, f"job-{self.job}", self.attempt, tuple(abandoned))
        self.writer = self.sink.create_writer(context, point.state)
        # Restored committables are committed again.
        self.sink.create_committer().commit(point.committables)
        self.next = point.next
        self.committables: list[Any] = []
        self.epoch = _Point(point.state, [], point.next)

    def write(self, count, batch):
        values = [f"{'xy'[i % 2]}{i:03}" for i in range(self.next, self.next + count)]
        self.next += count
        if batch:
            _write(self.writer, *values)
        else:
            for value in values:
                self.writer.write(value, NOON)

    def end_epoch(self):
        self.writer.flush(end_of_input=False)
        state = self.json(self.writer.snapshot_state())
        self.epoch = _Point(state, list(self.committables), self.next)

    def barrier(self, end_of_input=False):
        self.writer.flush(end_of_input)
        self.committables += self.json(self.writer.prepare_commit(end_of_input))
        state = self.json(self.writer.snapshot_state())
        self.number += 1
        self.epoch = _Point(state, list(self.committables), self.next, self.number)
        return self.epoch

    def take_checkpoint(self, completes, end_of_input=False):
        point = self.barrier(end_of_input)
        if completes:
            self.checkpoints = [*self.checkpoints[-1:], point]
            self.sink.create_committer().commit(self.committables)
            self.committables = []

    def take_savepoint(self):
        self.savepoints.append(self.barrier())
        self.newest_savepoint = self.number

    def lose_task(self, closes):
        if closes:
            self.writer.close()
        context = WriterContext(0, 1, f"job-{self.job}", self.attempt)
        self.writer = self.sink.create_writer(context, self.epoch.state)
        self.committables, self.next = list(self.epoch.committables), self.epoch.next

    def restart(self, closes, damaged):
        """The job fails. Its newest checkpoint may be damaged."""
        if closes:
            self.writer.close()
        points = self.checkpoints or [self.start]
        abandoned = [] if self.epoch.state is None else [self.epoch.state]
        abandoned += self.epoch.committables
        if self.newest_savepoint > points[0].number:
            abandoned = []
        if damaged and len(points) == 2:
            points = self.checkpoints = points[:1]
        self.attempt += 1
        self.returns.append(points[-1].next)
        self.begin(points[-1], abandoned)

    def go_back(self, which):
        """The driver is killed. A new job starts from any checkpoint or savepoint there is."""
        self.retained += self.checkpoints
        points = [*self.retained, *self.savepoints] or [self.start]
        self.start = points[which % len(points)]
        self.job += 1
        self.attempt = self.number = self.newest_savepoint = 0
        self.checkpoints = []
        self.returns.append(self.start.next)
        self.begin(self.start)

    def finish(self):
        self.take_checkpoint(completes=True, end_of_input=True)
        self.writer.close()

    def step(self, kind, *arguments):
        getattr(self, kind)(*arguments)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 6), st.booleans()),
        st.tuples(st.just("write"), st.integers(3, 6), st.booleans()),
        st.tuples(st.just("end_epoch")),
        st.tuples(st.just("take_checkpoint"), st.booleans()),
        st.tuples(st.just("lose_task"), st.booleans()),
        st.tuples(st.just("restart"), st.booleans(), st.just(False)),
    ),
    min_size=6,
    max_size=20,
)
wild_steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 6), st.booleans()),
        st.tuples(st.just("end_epoch")),
        st.tuples(st.just("take_checkpoint"), st.booleans()),
        st.tuples(st.just("take_checkpoint"), st.just(True)),
        st.tuples(st.just("take_savepoint")),
        st.tuples(st.just("lose_task"), st.booleans()),
        st.tuples(st.just("restart"), st.booleans(), st.booleans()),
        st.tuples(st.just("go_back"), st.integers(0, 20)),
        st.tuples(st.just("go_back"), st.integers(0, 20)),
    ),
    min_size=6,
    max_size=30,
)
policies = st.sampled_from(
    [
        RollingPolicy.default_rolling_policy(part_size=12),
        RollingPolicy.default_rolling_policy(),
        RollingPolicy.on_checkpoint_rolling_policy(),
        RollOn("x004"),
        "buckets",
    ]
)


@pytest.fixture(scope="module")
def no_fsync():
    """Hundreds of examples need not reach the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@settings(max_examples=examples(400), deadline=None)
@given(steps, policies)
def test_each_record_is_once_in_finished_files(driver, no_fsync, steps, policy):
    path = tempfile.mkdtemp(prefix="firesteel-test-")
    try:
        model = _Model(path, policy, driver)
        for step in steps:
            model.step(*step)
            finished = _contents(path)
            assert len(finished) == len(set(finished))
        model.finish()
        expected = sorted(f"{'xy'[i % 2]}{i:03}" for i in range(model.next))
        assert _contents(path) == expected
        # A process that dies leaves the files of the epoch in which it died.
        if all(arguments[0] for kind, *arguments in steps if kind in ("lose_task", "restart")):
            assert _files(path, hidden=True) == []
    finally:
        shutil.rmtree(path)


@settings(max_examples=examples(400), deadline=None)
@given(wild_steps, policies)
def test_any_checkpoint_and_savepoint_restores_any_number_of_times(
    driver, no_fsync, wild_steps, policy
):
    """No record is missing, and a record is repeated only if a job returned to a point before it."""
    path = tempfile.mkdtemp(prefix="firesteel-test-")
    try:
        model = _Model(path, policy, driver)
        for step in wild_steps:
            model.step(*step)
        model.finish()
        counts = Counter(_contents(path))
        for number in range(model.next):
            most = 1 + sum(place <= number for place in model.returns)
            assert 1 <= counts[f"{'xy'[number % 2]}{number:03}"] <= most
    finally:
        shutil.rmtree(path)


def test_restarts_leave_no_hidden_files(tmp_path, driver, no_fsync):
    model = _Model(tmp_path, RollingPolicy.default_rolling_policy(), driver)
    model.write(3, True)
    model.take_checkpoint(completes=True)
    for _ in range(25):
        model.write(2, True)
        model.end_epoch()
        model.restart(closes=True, damaged=False)
        assert len(_files(tmp_path, hidden=True)) == 1
    for _ in range(25):
        model.write(2, True)
        model.take_checkpoint(completes=True)
        model.write(2, True)
        model.end_epoch()
        model.restart(closes=True, damaged=False)
        assert len(_files(tmp_path, hidden=True)) <= 1
    model.finish()
    assert _files(tmp_path, hidden=True) == []
    assert len(_contents(tmp_path)) == model.next == 53
