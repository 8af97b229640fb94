from __future__ import annotations

from firesteel.datastream.connectors.base import SinkWriter, SourceSplit, WriteContext


class _Recorder(SinkWriter):
    def __init__(self):
        self.seen = []

    def write(self, value, context):
        self.seen.append((value, context.timestamp()))


def test_write_batch_tells_each_record_its_timestamp():
    writer = _Recorder()
    context = WriteContext()
    writer.write_batch(["a", "b"], [10, 20], context)
    writer.write_batch(["c"], None, context)
    assert writer.seen == [("a", 10), ("b", 20), ("c", None)]


def test_a_split_at_a_position_keeps_its_description():
    split = SourceSplit("s", {"start": 1})
    assert split.at(5) == SourceSplit("s", {"start": 1}, 5)
    assert split.position is None
