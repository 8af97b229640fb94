import json

import cloudpickle

from firesteel.datastream.connectors.base import WriteContext, WriterContext
from firesteel.testing import ListSink


def _writer(sink, subtask=0, state=None):
    return sink.create_writer(WriterContext(subtask, 2, "job"), state)


def _write(writer, *values):
    for value in values:
        writer.write(value, WriteContext())


def _commit(sink, committables):
    # What the runtime keeps of a committable is JSON.
    sink.create_committer().commit(json.loads(json.dumps(committables)))


def test_only_what_is_committed_counts():
    sink = ListSink()
    writer = _writer(cloudpickle.loads(cloudpickle.dumps(sink)))
    _write(writer, 1, 2)
    writer.flush(False)
    assert sink.values() == []
    _commit(sink, writer.prepare_commit(False))
    assert sink.values() == [1, 2]


def test_a_commit_that_comes_twice_does_nothing():
    sink = ListSink()
    writer = _writer(sink)
    _write(writer, 1)
    committables = writer.prepare_commit(False)
    _commit(sink, committables)
    _commit(sink, committables)
    assert sink.values() == [1]


def test_records_that_were_flushed_but_not_prepared_are_in_the_snapshot():
    sink = ListSink()
    writer = _writer(sink)
    _write(writer, 1)
    writer.flush(False)
    state = json.loads(json.dumps(writer.snapshot_state()))
    restored = _writer(sink, state=state)
    _write(restored, 2)
    _commit(sink, restored.prepare_commit(False))
    assert sink.values() == [1, 2]


def test_two_attempts_do_not_get_in_each_others_way():
    sink = ListSink()
    lost, used = _writer(sink), _writer(sink)
    _write(lost, "x")
    lost.prepare_commit(False)
    _write(used, "x")
    _commit(sink, used.prepare_commit(False))
    assert sink.values() == ["x"]


def test_order_is_kept_within_a_subtask():
    sink = ListSink()
    writers = [_writer(sink, subtask) for subtask in range(2)]
    for number in range(12):
        for writer in writers:
            _write(writer, number)
            _commit(sink, writer.prepare_commit(False))
    assert sink.values_by_subtask() == {0: list(range(12)), 1: list(range(12))}
    sink.clear()
    assert sink.values() == []


def test_a_directory_can_be_given(tmp_path):
    sink = ListSink(tmp_path / "new")
    writer = _writer(sink)
    _write(writer, 1)
    _commit(sink, writer.prepare_commit(True))
    assert ListSink(tmp_path / "new").values() == [1]
