import pytest

from firesteel.common.serialization import Encoder
from firesteel.datastream.connectors.base import Sink, SinkWriter
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink
from firesteel.errors import UserFunctionError
from firesteel.testing import JobHarness, ListSink, OperatorHarness, Pause, ScriptedSource


def test_records_are_visible_once_they_are_committed():
    sink = ListSink()
    with OperatorHarness.of(lambda s: s.sink_to(sink)) as harness:
        harness.process_elements([1, 2])
        snapshot = harness.snapshot()
        assert len(snapshot.committables) == 1
        assert sink.values() == []
        harness.commit()
        assert sink.values() == [1, 2]
        assert harness.committables == []


def test_what_comes_after_a_snapshot_belongs_to_the_next():
    sink = ListSink()
    with OperatorHarness.of(lambda s: s.sink_to(sink)) as harness:
        harness.process_element(1)
        harness.snapshot()
        harness.process_element(2)
        harness.commit()
        assert sink.values() == [1]
        harness.finish()
        harness.commit()
        assert sink.values() == [1, 2]


def test_a_restored_writer_goes_on_where_the_snapshot_was():
    sink = ListSink()

    def program(stream):
        return stream.sink_to(sink)

    with OperatorHarness.of(program) as harness:
        harness.process_element(1)
        snapshot = harness.snapshot()
        harness.commit()
        harness.process_element("lost with its writer")
    with OperatorHarness.restored(program, snapshot) as restored:
        restored.process_element(2)
        restored.snapshot()
        restored.commit()
    assert sink.values() == [1, 2]


@pytest.mark.parametrize(("old", "new"), [(1, 2), (2, 3), (3, 2), (3, 1)])
def test_files_in_progress_go_to_any_number_of_writers(tmp_path, old, new):
    def program(stream):
        buckets = BucketAssigner.base_path_bucket_assigner()
        builder = FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder())
        return stream.sink_to(builder.with_bucket_assigner(buckets).build())

    snapshots, written = [], []
    for subtask in range(old):
        with OperatorHarness.of(program, parallelism=old, subtask=subtask) as harness:
            harness.process_element(f"before {subtask}")
            snapshots.append(harness.snapshot())
            written.append(f"before {subtask}")
    for subtask in range(new):
        with OperatorHarness.restored(program, snapshots, new, subtask) as harness:
            harness.process_element(f"after {subtask}")
            harness.finish()
            harness.commit()
            written.append(f"after {subtask}")
    lines = [line for file in tmp_path.glob("part-*") for line in file.read_text().splitlines()]
    assert sorted(lines) == sorted(written)


class Recording(SinkWriter):
    def __init__(self):
        self.calls = []

    def write(self, value, context):
        if value == "bad":
            raise ValueError("no such table")
        self.calls.append(
            (
                value,
                context.timestamp(),
                context.current_watermark(),
                context.current_processing_time(),
            )
        )

    def flush(self, end_of_input):
        self.calls.append(("flush", end_of_input))

    def close(self):
        self.calls.append("close")


class RecordingSink(Sink):
    def __init__(self):
        self.writers = []

    def create_writer(self, context, state=None):
        self.writers.append(Recording())
        return self.writers[-1]


def test_a_writer_gets_context_flush_and_close():
    sink = RecordingSink()
    with OperatorHarness.of(lambda s: s.sink_to(sink)) as harness:
        harness.set_processing_time(5)
        harness.process_watermark(7)
        harness.process_element("a", timestamp=9)
        harness.snapshot()
        harness.finish()
    (writer,) = sink.writers
    assert writer.calls == [("a", 9, 7, 5), ("flush", False), ("flush", True), "close"]


def test_a_failing_writer_is_named():
    harness = OperatorHarness.of(lambda s: s.sink_to(RecordingSink()).name("table"))
    with pytest.raises(UserFunctionError, match="no such table") as caught:
        harness.process_elements(["good", "bad"])
    assert caught.value.operator == "table: Writer"
    assert caught.value.function == "Recording.write"


class FlushesByTime(ListSink):
    """Has a writer that asks to be flushed every five seconds."""

    def create_writer(self, context, state=None):
        writer = super().create_writer(context, state)
        writer.next_flush_delay = lambda: 5.0  # type: ignore[method-assign]  # of this writer only
        return writer


@pytest.mark.parametrize(("sink", "seconds"), [(ListSink, 60), (FlushesByTime, 5)])
def test_an_epoch_is_run_when_a_writer_asks_for_it_though_no_record_comes(sink, seconds):
    def program(env):
        source = ScriptedSource([1, Pause(), Pause(60.0), 2])
        env.from_source(source, None, "script").sink_to(sink())

    harness = JobHarness(program)
    before = harness.now_millis()
    harness.run()
    assert (harness.now_millis() - before) / 1000 == pytest.approx(seconds, abs=2)
