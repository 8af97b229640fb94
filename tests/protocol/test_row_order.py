"""The order in which slots of batch jobs take their rows."""

from __future__ import annotations

from random import Random

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.protocol.row_order import KEYED_RECORDS, RowOrder
from firesteel.protocol.rows import (
    ABORTED,
    ACK,
    CONTROL,
    DATA,
    END_OF_EPOCH,
    EXTERNAL,
    FINISHED,
    HEADER,
    KEYED,
    WATERMARK,
    BufferRow,
)
from tests.batch_programs import PROGRAMS

_RULES, _EVENTS, _OTHERS = 7, 3, 1
ORDER = RowOrder(broadcast=frozenset({_RULES}), keyed=frozenset({_EVENTS}))

# In their order.
ROWS = [
    BufferRow(0, 1, 0, 99, HEADER, b"run"),
    BufferRow(0, 1, 1, 98, HEADER, b"run"),
    BufferRow(0, 2, 0, 0, CONTROL, b"control"),
    BufferRow(0, _EVENTS, 1, 0, END_OF_EPOCH, ABORTED),
    BufferRow(0, _RULES, 0, 0, DATA, b"rule"),
    BufferRow(0, _RULES, 0, 1, WATERMARK, b"w"),
    BufferRow(0, _RULES, 0, 2, END_OF_EPOCH, FINISHED),
    BufferRow(0, _OTHERS, 0, 0, DATA, b"z"),
    BufferRow(0, _OTHERS, 0, 1, DATA, b"a"),
    BufferRow(0, _OTHERS, 1, 0, END_OF_EPOCH, FINISHED),
    BufferRow(0, _EVENTS, 0, 0, EXTERNAL, b"x"),
    BufferRow(0, _RULES, 0, 5, ACK, b"ack"),
    BufferRow(0, _EVENTS, 1, 0, KEYED, KEYED_RECORDS + b"\x00a"),
    BufferRow(0, _EVENTS, 0, 1, KEYED, KEYED_RECORDS + b"\x7f"),
    BufferRow(0, _EVENTS, 0, 0, KEYED, KEYED_RECORDS + b"\x80"),
    BufferRow(0, _EVENTS, 0, 2, KEYED, KEYED_RECORDS + b"\xff\x00"),
    BufferRow(0, _EVENTS, 0, 3, WATERMARK, b"w"),
    BufferRow(0, _EVENTS, 0, 4, END_OF_EPOCH, FINISHED),
    BufferRow(0, _EVENTS, 1, 2, END_OF_EPOCH, FINISHED),
]


def test_the_ranks() -> None:
    for seed in range(20):
        rows = list(ROWS)
        Random(seed).shuffle(rows)
        assert sorted(rows, key=ORDER.place) == ROWS


def _orders(name: str) -> list[RowOrder | None]:
    (program,) = [program for program in PROGRAMS if program.build.__name__ == name]
    env = StreamExecutionEnvironment().set_parallelism(1)
    program(env).print()
    levels = env._compile().levels
    return [RowOrder.of_level(levels, level) for level in range(len(levels.slots))]


def test_only_levels_with_keys_or_a_broadcast_side_are_sorted() -> None:
    first, second, third = _orders("results_have_the_maximum_timestamp")
    assert first is None
    assert second is not None
    assert third is not None
    assert second.keyed
    assert third.keyed
    assert not second.keyed & third.keyed
    first, second = _orders("broadcast_before_others")
    assert first is None
    assert second is not None
    assert second.broadcast
    assert not second.keyed
