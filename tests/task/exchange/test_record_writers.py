"""Record writers: the target of each record, and the rows that are written."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Row, Types
from firesteel.common.columns import ColumnLayout
from firesteel.common.expressions import col
from firesteel.common.key_expressions import KeyExpressions
from firesteel.errors import TypeMismatchError, UserFunctionError
from firesteel.graph.partitioning import (
    BROADCAST,
    FORWARD,
    GLOBAL,
    REBALANCE,
    RESCALE,
    SHUFFLE,
    Partitioning,
    ShipStrategy,
    target_subtasks,
)
from firesteel.protocol.rows import ABORTED, DATA, END_OF_EPOCH, FINISHED, OPEN, WATERMARK
from firesteel.state.key_groups import KeyRouter
from firesteel.task.codegen.key_loops import KeySelection
from firesteel.task.column_batch import ColumnBatch
from firesteel.task.exchange import record_writers
from firesteel.task.exchange.keys import key_function
from firesteel.task.exchange.record_writers import BadPartitionError
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode import pickling
from firesteel.usercode.unpicklable import UnpicklableRecordError


def _hash(select=lambda value: value, key_type=None):
    return Partitioning(ShipStrategy.HASH, key_selector=select, key_type=key_type)


def _custom(partitioner, select=lambda value: value):
    return Partitioning(ShipStrategy.CUSTOM, key_selector=select, partitioner=partitioner)


_ALL = [FORWARD, GLOBAL, REBALANCE, RESCALE, SHUFFLE, BROADCAST, _hash(), _custom(lambda k, n: 0)]
_names = [how.strategy.name for how in _ALL]


# Where records go


def test_forward_sends_to_the_same_subtask(sent):
    edge = sent(FORWARD, sources=3, targets=3, subtask=1, first_slot=10)
    edge.emit([1, 2])
    edge.writer.end_epoch(finished=False)
    assert edge.values() == {11: [1, 2]}
    assert {row.target for row in edge.rows} == {11}


def test_global_sends_everything_to_the_first(sent):
    edge = sent(GLOBAL, sources=3, targets=3, subtask=1, first_slot=10)
    edge.emit([1, 2])
    edge.writer.flush()
    assert edge.values() == {10: [1, 2]}


@pytest.mark.parametrize("batches", [[10], [1] * 10, [3, 0, 4, 2, 1]])
def test_rebalance_is_an_exact_round_robin_however_batches_are_cut(sent, batches):
    edge = sent(REBALANCE, targets=3)
    records = iter(range(10))
    for size in batches:
        edge.emit([next(records) for _ in range(size)])
    edge.writer.flush()
    assert edge.values() == {0: [0, 3, 6, 9], 1: [1, 4, 7], 2: [2, 5, 8]}


@given(
    epochs=st.lists(st.integers(0, 7), min_size=1, max_size=30),
    targets=st.integers(1, 5),
    first=st.integers(0, 100),
)
def test_rebalance_continues_with_the_next_target_across_epochs(epochs, targets, first):
    from tests.task.conftest import Sent

    edge = Sent(REBALANCE, targets=targets, epoch=first)
    for epoch, records in enumerate(epochs, first):
        edge.writer.begin_epoch(epoch)
        for _ in range(records):
            edge.emit(["x"])
        edge.writer.end_epoch(finished=False)
    counts = [len(edge.values().get(target, [])) for target in range(targets)]
    assert sum(counts) == sum(epochs)
    assert max(counts) - min(counts) <= 1


def test_first_epochs_and_other_subtasks_start_elsewhere(sent):
    def first_target(subtask, epoch):
        edge = sent(REBALANCE, sources=3, targets=3, subtask=subtask, epoch=epoch)
        edge.emit(["x"])
        edge.writer.flush()
        (target,) = edge.values()
        return target

    assert [first_target(0, epoch) for epoch in range(4)] == [0, 1, 2, 0]
    assert [first_target(subtask, 0) for subtask in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(("sources", "targets"), [(2, 4), (2, 3), (3, 2), (4, 2), (3, 3), (1, 3)])
def test_rescale_is_a_round_robin_over_the_targets_that_channels_says(sent, sources, targets):
    for subtask in range(sources):
        edge = sent(RESCALE, sources=sources, targets=targets, subtask=subtask)
        edge.emit(list(range(12)))
        edge.writer.end_epoch(finished=False)
        expected = target_subtasks(ShipStrategy.RESCALE, subtask, sources, targets)
        ends = [row.target for row in edge.rows if row.kind == END_OF_EPOCH]
        assert ends == list(expected)
        counts = {target: len(values) for target, values in edge.values().items()}
        assert counts == dict.fromkeys(expected, 12 // len(expected))


_keys = st.one_of(
    st.lists(st.integers(-10, 100_000)),
    st.lists(st.text(max_size=3)),
    st.lists(st.tuples(st.integers(), st.text(max_size=2))),
    st.lists(st.one_of(st.integers(), st.text(max_size=2))),
)
# With timestamps or without.
_batches = st.lists(st.tuples(_keys, st.booleans()), min_size=1, max_size=4)


def _plain(value):
    return value[1]


def _calling(value):
    return value.__getitem__(1)


@given(batches=_batches, targets=st.integers(1, 70), select=st.sampled_from([_plain, _calling]))
def test_hash_goes_where_the_key_router_says_and_brings_keys_and_times(batches, targets, select):
    from tests.task.conftest import Sent

    edge = Sent(_hash(select), targets=targets)
    expected: dict[int, list] = {}
    router = KeyRouter(targets, 128)
    for number, (keys, stamped) in enumerate(batches):
        values = [(number, key) for key in keys]
        timestamps = [1000 * number + index for index in range(len(keys))]
        edge.emit(values, timestamps if stamped else None)
        for value, time, target in zip(values, timestamps, router.targets(keys), strict=True):
            expected.setdefault(target, []).append((value, value[1], time if stamped else None))
    edge.writer.flush()
    found: dict[int, list] = {}

    for target, buffer in edge.buffers():
        received = found.setdefault(target, [])

        values, keys, timestamps = buffer
        if select is _plain:
            selection = KeySelection(key_function(edge.writer.edge), "key_by")
            keys = RecordBatch(values, timestamps, keys, selection).keys
        times = timestamps or [None] * len(values)
        received.extend(zip(values, keys, times, strict=True))
    assert found == expected


@pytest.mark.parametrize(
    ("how", "key", "travels"),
    [
        (_hash(_plain), 7, False),
        (_hash(_plain), 10**12, False),
        (_hash(_plain), "seven", True),
        (_hash(_calling), 7, True),
        (_hash(_plain, Types.LONG()), 7, True),
        (_hash(_plain, Types.PICKLED_BYTE_ARRAY()), 7, False),
    ],
    ids=["small", "large", "text", "called", "typed", "untyped"],
)
def test_only_whole_numbers_that_a_plain_expression_tells_do_not_travel(sent, how, key, travels):
    edge = sent(how, targets=3)
    for _ in range(2):
        # The first batch shows what kind of keys there are.
        edge.emit([("record", key)])
        edge.writer.flush()
    _, (values, keys, _) = edge.buffers()[-1]
    assert (values, keys) == ([("record", key)], [key] if travels else None)


@pytest.mark.parametrize(
    ("keys", "key_type"),
    [
        ([[1, 2], [], [[3]], [1, 2]], None),
        ([{"a": [1], "b": 2}, {}, {"b": 2, "a": [1]}], None),
        ([("a", [1]), ("a", [1]), "a"], None),
        ([[1], [2], [1]], Types.LIST(Types.LONG())),
        ([{"a": 1}, {"b": 2}], Types.MAP(Types.STRING(), Types.LONG())),
    ],
)
def test_keys_without_a_hash_go_by_their_value(sent, keys, key_type):
    edge = sent(_hash(lambda value: value[1], key_type), targets=5)
    values = list(enumerate(keys))
    for half in (values[:2], values[2:]):
        edge.emit(half)
    edge.writer.flush()
    received = [
        (slot, value, key)
        for slot, (values, keys, _) in edge.buffers()
        for value, key in zip(values, keys, strict=True)
    ]
    assert sorted(value[0] for _, value, _ in received) == list(range(len(keys)))
    targets: dict[object, int] = {}
    for slot, (_, selected), key in received:
        assert key == selected
        assert targets.setdefault(key, slot) == slot


def test_broadcast_sends_everything_to_all_serialized_once(sent):
    edge = sent(BROADCAST, targets=3)
    edge.emit([1, 2], [10, 20])
    edge.writer.flush()
    assert edge.values() == {0: [1, 2], 1: [1, 2], 2: [1, 2]}
    payloads = [row.payload for row in edge.rows]
    assert all(payload is payloads[0] for payload in payloads)
    assert edge.writer.records_out == 6
    assert edge.writer.bytes_out == 3 * len(payloads[0])


def test_shuffle_spreads_and_is_the_same_when_the_task_runs_again(sent):
    def run(epoch, batches=1):
        edge = sent(SHUFFLE, targets=3, epoch=epoch)
        for part in range(batches):
            edge.emit(list(range(part, 300, batches)) if batches > 1 else list(range(300)), None)
        edge.writer.flush()
        return edge.values()

    first = run(1)
    assert sorted(value for values in first.values() for value in values) == list(range(300))
    assert all(60 < len(values) < 140 for values in first.values())
    assert run(1) == first
    assert run(2) != first


def test_custom_partitioning_asks_with_key_and_number_of_targets(sent):
    asked = []

    def partition(key, count):
        asked.append((key, count))
        return key % count

    edge = sent(_custom(partition, select=lambda value: value[0]), targets=2)
    edge.emit([(4, "a"), (5, "b"), (6, "c")], [1, 2, 3])
    edge.writer.flush()
    assert asked == [(4, 2), (5, 2), (6, 2)]
    assert edge.buffers() == [
        (0, ([(4, "a"), (6, "c")], None, [1, 3])),
        (1, ([(5, "b")], None, [2])),
    ]


@pytest.mark.parametrize("answer", [-1, 2])
def test_a_partition_that_does_not_exist_is_an_error_that_names_the_record(sent, answer):
    edge = sent(_custom(lambda key, count: answer if key == "odd" else 0), targets=2)
    with pytest.raises(BadPartitionError, match=rf"node 1 returned {answer} for the record 'odd'"):
        edge.emit(["even", "odd"])


def test_a_failing_partitioner_is_named(sent):
    edge = sent(_custom(lambda key, count: 1 // key), targets=2)
    with pytest.raises(UserFunctionError) as caught:
        edge.emit([1, 0, 1])
    assert caught.value.operator == "partition_custom after node 1"
    assert caught.value.record == "0"


def test_a_failing_key_selector_is_named(sent):
    edge = sent(_hash(lambda value: value["key"]), targets=2)
    with pytest.raises(UserFunctionError) as caught:
        edge.emit([{"key": 1}, {}, {"key": 2}])
    assert caught.value.operator == "key_by after node 1"
    assert caught.value.record == "{}"


@pytest.mark.parametrize("key", [[object()], object()], ids=["inside a list", "itself"])
def test_a_key_that_cannot_be_one_names_its_record(sent, key):
    edge = sent(_hash(lambda value: value[1]), targets=2)
    with pytest.raises(UserFunctionError) as caught:
        edge.emit([("good", 1), ("bad", key)])
    assert caught.value.record is not None
    assert "bad" in caught.value.record
    assert "list or dict of these" in str(caught.value)


@pytest.mark.parametrize("answer", [2, -1, 0.5, 1.0, "x", None, [0]], ids=repr)
def test_a_partition_that_does_not_exist_is_refused(sent, answer):
    edge = sent(_custom(lambda key, _: answer if key == "bad" else 1), targets=2)
    with pytest.raises(BadPartitionError, match=r"after node 1 returned .* 'bad'"):
        edge.emit(["good", "bad"])


def test_a_record_that_cannot_be_pickled_is_named(sent):
    edge = sent(REBALANCE, targets=2)
    edge.emit(["good", {"lock": threading.Lock()}])
    with pytest.raises(UnpicklableRecordError) as caught:
        edge.writer.flush()
    assert caught.value.operator == "node 1"
    assert "the entry 'lock' is a _thread.lock" in str(caught.value)


# Keys of a declared type


@pytest.mark.parametrize("timestamps", [None, [1, 2, 3, 4]], ids=["plain", "stamped"])
def test_keys_go_through_their_type(sent, timestamps):
    edge = sent(_hash(key_type=Types.DOUBLE()), targets=3)
    for _ in range(2):
        edge.emit([1, 2, 3, 4], timestamps)
    edge.writer.flush()
    found = [
        pair for _, (values, keys, _) in edge.buffers() for pair in zip(values, keys, strict=True)
    ]
    assert sorted(found) == [(value, float(value)) for value in (1, 1, 2, 2, 3, 3, 4, 4)]
    assert {type(key) for _, key in found} == {float}


def test_typed_keys_go_where_untyped_ones_go(sent):
    values = [0, -5, 7, 10**12, None, 7]
    typed, untyped = sent(_hash(key_type=Types.LONG()), targets=3), sent(_hash(), targets=3)
    for edge in (typed, untyped):
        for start in range(0, len(values), 2):
            edge.emit(values[start : start + 2])
        edge.writer.flush()
    assert typed.values() == untyped.values()


def test_a_key_of_another_type_is_refused(sent):
    edge = sent(_hash(key_type=Types.STRING()), targets=2)
    with pytest.raises(TypeMismatchError) as caught:
        edge.emit(["one", 2])
    assert caught.value.operator == "key_by after node 1"
    assert (caught.value.value, caught.value.type) == ("2", "String")


# In which rows


@pytest.mark.parametrize("how", _ALL, ids=_names)
def test_rows_are_numbered_per_channel_and_end_with_a_mark(sent, how):
    targets = 1 if how is FORWARD else 3
    edge = sent(how, targets=targets, subtask=0)
    for epoch, finished in ((1, False), (2, True)):
        edge.rows.clear()
        edge.writer.begin_epoch(epoch)
        edge.emit(list(range(50)))
        edge.writer.watermark(7)
        edge.emit(list(range(50)))
        edge.writer.end_epoch(finished=finished)
        for target in range(targets):
            rows = [row for row in edge.rows if row.target == target]
            assert [row.seq for row in rows] == list(range(len(rows)))
            assert {(row.edge, row.channel) for row in rows} == {(3, 0)}
            assert rows[-1].kind == END_OF_EPOCH
            assert rows[-1].payload == (FINISHED if finished else OPEN)
            assert [pickling.loads(row.payload) for row in rows if row.kind == WATERMARK] == [7]


def test_a_watermark_goes_behind_the_records_before_it(sent):
    edge = sent(REBALANCE, targets=2)
    edge.emit([1, 2])
    edge.writer.watermark(5)
    edge.emit([3, 4])
    edge.writer.flush()
    for target in range(2):
        kinds = [row.kind for row in edge.rows if row.target == target]
        assert kinds == [DATA, WATERMARK, DATA]


def test_a_buffer_is_sent_when_it_is_full(sent):
    edge = sent(GLOBAL)
    edge.emit([0] * 1000)
    assert edge.rows == []
    edge.emit([0] * 24)
    assert [len(values) for _, (values, _, _) in edge.buffers()] == [1024]


def test_large_records_make_short_buffers(sent):
    edge = sent(GLOBAL)
    record = "x" * 10_000
    for _ in range(3_000):
        edge.emit([record + str(_)])
    sizes = [len(pickling.dumps(buffer)) for _, buffer in edge.buffers()]
    # After the first one, all are close to the size that a buffer shall have.
    assert all(size < 1.2 * record_writers._BUFFER_BYTES for size in sizes[1:])
    assert all(size > 0.8 * record_writers._BUFFER_BYTES for size in sizes[1:])


def test_small_records_make_long_buffers_up_to_a_limit(sent):
    edge = sent(GLOBAL)
    for _ in range(100):
        edge.emit([None] * 1024)
    lengths = [len(values) for _, (values, _, _) in edge.buffers()]
    assert max(lengths) == record_writers._MAX_BUFFER_RECORDS


@pytest.mark.parametrize("how", _ALL, ids=_names)
def test_buffer_timeout_0_sends_every_record_at_once(sent, how):
    edge = sent(how, buffer_timeout=0)
    edge.emit(["a", "b", "c"], [1, 2, 3])
    assert [(values, stamps) for _, (values, _, stamps) in edge.buffers()] == [
        (["a"], [1]),
        (["b"], [2]),
        (["c"], [3]),
    ]


@pytest.mark.parametrize("how", [GLOBAL, _hash()], ids=["global", "hash"])
def test_records_with_and_without_timestamps_do_not_share_a_buffer(sent, how):
    edge = sent(how)
    edge.emit([10])
    edge.emit([20], [1])
    edge.emit([30], [2])
    edge.emit([40])
    edge.writer.flush()
    assert [(values, stamps) for _, (values, _, stamps) in edge.buffers()] == [
        ([10], None),
        ([20, 30], [1, 2]),
        ([40], None),
    ]


def test_counts_are_those_of_the_epoch(sent):
    edge = sent(REBALANCE, targets=2)
    edge.emit([1, 2, 3])
    edge.writer.end_epoch(finished=False)
    assert edge.writer.records_out == 3
    assert edge.writer.bytes_out == sum(len(r.payload) for r in edge.rows if r.kind == DATA)
    edge.writer.begin_epoch(2)
    assert (edge.writer.records_out, edge.writer.bytes_out) == (0, 0)


# Attempts that do not end well


@pytest.mark.parametrize("how", _ALL, ids=_names)
def test_an_epoch_begins_afresh_after_an_attempt_that_broke_off(sent, how):
    def run(edge):
        edge.writer.begin_epoch(5)
        edge.rows.clear()
        edge.emit(list(range(20)))
        edge.writer.end_epoch(finished=False)
        return edge.rows[:]

    targets = 1 if how is FORWARD else 3
    broken = sent(how, targets=targets, epoch=5)
    broken.emit(list(range(2_000)))
    assert run(broken) == run(sent(how, targets=targets))


def test_an_aborted_epoch_tells_every_target_and_keeps_nothing(sent):
    edge = sent(REBALANCE, targets=2)
    edge.emit([1, 2, 3])
    edge.writer.abort_epoch()
    assert [(row.target, row.kind, row.payload) for row in edge.rows] == [
        (0, END_OF_EPOCH, ABORTED),
        (1, END_OF_EPOCH, ABORTED),
    ]
    edge.writer.flush()
    assert edge.values() == {}


# Columns

_PAIR = Types.ROW_NAMED(["key", "n"], [Types.STRING(), Types.LONG()])
_LAYOUT = ColumnLayout(_PAIR)
_KEYED = [
    Partitioning(ShipStrategy.HASH, keys, keys.key_type)
    for keys in (
        KeyExpressions((col("key"),), _PAIR),
        KeyExpressions((col("n") - 4,), _PAIR),
        KeyExpressions((col("n") > 3,), _PAIR),
        KeyExpressions((col("n"), col("key").is_null()), _PAIR),
    )
]
_pairs = st.lists(
    st.tuples(st.none() | st.text(max_size=3), st.integers(-(2**63) + 4, 2**63 - 1)), max_size=40
)


@given(
    partitioning=st.sampled_from(
        [FORWARD, GLOBAL, REBALANCE, RESCALE, SHUFFLE, BROADCAST, _hash(len), *_KEYED]
    ),
    batches=st.lists(_pairs.filter(bool), max_size=4),
    in_columns=st.lists(st.booleans(), min_size=4, max_size=4),
    stamped=st.booleans(),
    targets=st.integers(1, 3),
    size=st.none() | st.integers(1, 300),
)
def test_columns_go_where_their_records_go(
    partitioning, batches, in_columns, stamped, targets, size
):
    from tests.task.conftest import Sent

    if partitioning is FORWARD:
        targets = 1
    by_rows = Sent(partitioning, targets=targets)
    by_columns = Sent(partitioning, targets=targets)
    by_columns.writer.resize_buffers(size)
    for pairs, is_column in zip(batches, in_columns, strict=False):
        rows = [Row(key=key, n=number) for key, number in pairs]
        stamps = list(range(len(rows))) if stamped else None
        by_rows.emit(rows, stamps)
        if is_column:
            columns = ColumnBatch(_LAYOUT.columns_of(rows), _LAYOUT, stamps)
            by_columns.writer.emit(columns)
        else:
            by_columns.emit(rows, stamps)
    for edge in (by_rows, by_columns):
        edge.writer.flush()
        assert not edge.writer.has_records
    assert repr(by_columns.values()) == repr(by_rows.values())
    stamps_of = [
        [
            (target, stamp)
            for target, (_, _, stamps) in sorted(edge.buffers(), key=lambda one: one[0])
            for stamp in stamps or ()
        ]
        for edge in (by_rows, by_columns)
    ]
    assert stamps_of[0] == stamps_of[1]
    assert by_rows.writer.records_out == by_columns.writer.records_out


def test_columns_wait_for_a_full_buffer_or_a_flush(sent):
    edge = sent(REBALANCE, targets=2)
    columns = ColumnBatch(_LAYOUT.columns_of([Row(key="a", n=1)]), _LAYOUT)
    edge.writer.emit(columns)
    assert edge.writer.has_records
    assert edge.rows == []
    edge.writer.watermark(5)
    assert [row.kind for row in edge.rows] == [DATA, WATERMARK, WATERMARK]
    large = ColumnBatch(_LAYOUT.columns_of([Row(key="a" * 1000, n=1)] * 3000), _LAYOUT)
    edge.writer.emit(large)
    assert len(edge.rows) > 4
    assert not edge.writer.has_records


def test_an_abandoned_epoch_leaves_no_columns(sent):
    edge = sent(REBALANCE, targets=2)
    columns = ColumnBatch(_LAYOUT.columns_of([Row(key="a", n=1)]), _LAYOUT)
    edge.writer.emit(columns)
    edge.writer.abort_epoch()
    edge.writer.emit(columns)
    edge.writer.begin_epoch(2)
    edge.writer.flush()
    assert [row for row in edge.rows if row.kind == DATA] == []
