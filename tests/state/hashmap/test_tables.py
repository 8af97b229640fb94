"""Tables in memory."""

from __future__ import annotations

from firesteel.state.changelog import SegmentStore
from firesteel.state.hashmap.backend import HashMapKeyedStateBackend
from firesteel.state.tables import MISSING


def test_a_value_that_lives_within_an_epoch_leaves_no_change() -> None:
    backend, store = HashMapKeyedStateBackend(), SegmentStore(None, 1 << 20)
    table = backend.value_table("timers", namespaced=True)
    table.put(("a", 1), None)
    table.remove(("a", 1))
    table.remove(("never", 1))
    assert table.get(("a", 1)) is MISSING
    assert backend.seal(1, store) == ()
    backend.confirm()
    table.put(("a", 2), None)
    (segment,) = backend.seal(2, store)
    backend.confirm()
    table.remove(("a", 2))
    assert table.get(("a", 2)) is MISSING
    removal = backend.seal(3, store)
    backend.confirm()
    restored = HashMapKeyedStateBackend()
    restored.restore([segment], store)
    assert list(restored.keys("timers")) == [("a", 2)]
    restored.restore([segment, *removal], store)
    assert list(restored.keys("timers")) == []
