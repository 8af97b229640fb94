"""The ledger keeps exactly the state that a slot needs to be restored."""

from firesteel.master.state_ledger import StateLedger
from firesteel.protocol.messages import OperatorHandle, SubtaskAck, SubtaskHandle, VertexMetrics
from firesteel.state.changelog import Segment, SegmentFile


def _ack(segments=None, whole=None, gate=None, vertex=1, subtask=0):
    return SubtaskAck(
        vertex=vertex,
        subtask=subtask,
        segments=segments or {},
        whole=whole or {},
        gate=gate,
        sources={},
        committables={},
        finished=False,
        watermark=0,
        metrics=VertexMetrics(),
        user_metrics={},
    )


def _segment(epoch, *, full=False, path=None):
    return Segment(epoch, full, 1, inline=None if path else b"x", path=path)


def test_an_unknown_subtask_starts_empty():
    assert StateLedger().handle(1, 0) == SubtaskHandle()


def test_segments_add_up():
    ledger = StateLedger()
    first, second = _segment(1), _segment(3)
    ledger.record(_ack({5: (first,)}))
    ledger.record(_ack())
    ledger.record(_ack({5: (second,)}))
    assert ledger.handle(1, 0).operators == {5: OperatorHandle((first, second))}


def test_a_full_segment_replaces_the_earlier_ones_and_their_files():
    ledger = StateLedger()
    ledger.record(_ack({5: (_segment(1, path="/1"),)}))
    ledger.record(_ack({5: (_segment(2, path="/2"),)}))
    assert ledger.files() == {"/1", "/2"}
    full = _segment(3, full=True, path="/3")
    ledger.record(_ack({5: (full,)}))
    assert ledger.handle(1, 0).operators == {5: OperatorHandle((full,))}
    assert ledger.files() == {"/3"}


def test_a_full_segment_keeps_what_came_after_its_epoch():
    ledger = StateLedger()
    logs = [_segment(epoch) for epoch in (1, 2, 3, 4)]
    for log in logs[:3]:
        ledger.record(_ack({5: (log,)}))
    full = _segment(2, full=True)
    ledger.record(_ack({5: (full, logs[3])}))
    assert ledger.handle(1, 0).operators == {5: OperatorHandle((full, logs[2], logs[3]))}


def test_files_that_full_segments_have_in_common_stay():
    ledger = StateLedger()
    for epoch, names in ((1, ("old", "common")), (2, ("common", "new"))):
        kept = tuple(SegmentFile(name, 0, 0, path=name) for name in names)
        ledger.record(_ack({5: (Segment(epoch, True, 0, files=kept),)}))
    assert ledger.files() == {"common", "new"}


def test_what_was_restored_counts_until_the_first_ack():
    ledger = StateLedger()
    restored = SubtaskHandle(
        {5: OperatorHandle((_segment(7, path="/old"),), whole=b"w")}, restored_checkpoint_id=3
    )
    ledger.restore(1, 0, restored)
    assert ledger.handle(1, 0) == restored
    assert ledger.files() == {"/old"}
    ledger.record(_ack({5: (_segment(8, path="/new"),)}))
    handle = ledger.handle(1, 0).operators[5]
    assert [segment.path for segment in handle.segments] == ["/old", "/new"]
    assert handle.whole is None


def test_what_is_whole_is_replaced_even_by_nothing():
    ledger = StateLedger()
    ledger.record(_ack(whole={5: b"old", 6: b"old"}, gate="first"))
    ledger.record(_ack(whole={5: b"new"}, gate="second"))
    handle = ledger.handle(1, 0)
    assert handle.operators == {5: OperatorHandle(whole=b"new"), 6: OperatorHandle()}
    assert handle.gate == "second"


def test_subtasks_and_operators_are_kept_apart():
    ledger = StateLedger()
    ledger.record(_ack({5: (_segment(1),)}, subtask=0))
    ledger.record(_ack({5: (_segment(2),), 6: (_segment(3),)}, subtask=1))
    ledger.record(_ack({5: (_segment(4),)}, vertex=2))
    assert [s.epoch for s in ledger.handle(1, 1).operators[6].segments] == [3]
    assert [s.epoch for s in ledger.handle(1, 0).operators[5].segments] == [1]
    assert [s.epoch for s in ledger.handle(2, 0).operators[5].segments] == [4]
