"""Joins equal their models for any interleaving, batches, restarts and parallelism."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from firesteel.common.time import Time
from firesteel.common.types import Row, RowKind
from firesteel.datastream import OutputTag
from firesteel.datastream.window import EventTimeSessionWindows
from tests.properties.window_model import MIN_WATERMARK, WindowModel, aligned, sessions
from tests.task.changes import fold
from tests.task.joins import JoinSubtasks
from tests.task.operators.test_interval_join import interval_join
from tests.task.operators.test_join import join
from tests.task.windows import GeneralEventTimeTrigger, sliding, tumbling
from tests.thoroughness import examples

_END = 2**63 - 1

_batches = st.tuples(
    st.integers(0, 1),
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.integers(-20, 60)),
        min_size=1,
        max_size=6,
    ),
)
_event = st.one_of(
    _batches.map(lambda batch: ("records", batch)),
    _batches.map(lambda batch: ("records", batch)),
    st.integers(0, 15).map(lambda by: ("advance", by)),
    st.integers(1, 3).map(lambda parallelism: ("restart", parallelism)),
    st.just(("end of epoch", 0)),
)
_events = st.lists(_event, max_size=14)
_savepoint = st.integers(1, 3).map(lambda parallelism: ("savepoint", parallelism))


def _key(record: Any) -> Any:
    return record[0]


def _grouped(first: Any, second: Any) -> Any:
    key = (first or second)[0][0]
    yield key, [r[1] for r in first], [r[1] for r in second]


def _split(tagged: list[Any]) -> Any:
    return tuple([value for side, value in tagged if side == s] for s in (0, 1))


@pytest.mark.parametrize("kind", ["tumbling", "sliding", "general", "sessions"])
@given(
    events=st.lists(st.one_of(_event, _event, _event, _savepoint), max_size=14),
    lateness=st.sampled_from([0, 0, 5, 30]),
    parallelism=st.integers(1, 3),
    tagged=st.booleans(),
)
@settings(max_examples=examples(80), deadline=None)
def test_windows_over_two_streams(kind, events, lateness, parallelism, tagged):
    gap = EventTimeSessionWindows.with_gap(Time.milliseconds(6))
    assigner, assign = {
        "tumbling": (tumbling(10, 3), aligned(10, 10, 3)),
        "sliding": (sliding(12, 4), aligned(12, 4, 0)),
        "general": (sliding(12, 4), aligned(12, 4, 0)),
        "sessions": (gap, sessions(6)),
    }[kind]

    def program(a: Any, b: Any) -> Any:
        windowed = a.co_group(b).where(_key).equal_to(_key).window(assigner)
        if kind == "general":
            windowed.trigger(GeneralEventTimeTrigger())
        if tagged:
            windowed.side_output_left_late_data(OutputTag("0"))
            windowed.side_output_right_late_data(OutputTag("1"))
        return windowed.allowed_lateness(lateness).apply(_grouped)

    model = WindowModel(assign, lateness, _split, merges=kind == "sessions")
    subtasks = JoinSubtasks(program, parallelism)
    watermark = 0
    for event, argument in [*events, ("advance", _END)]:
        if event == "records":
            side, records = argument
            for key, value, timestamp in records:
                model.add((key, (side, value), timestamp))
            subtasks.add(side, [((key, value), time) for key, value, time in records])
        elif event == "advance":
            watermark = min(_END, watermark + argument)
            model.advance(watermark)
            subtasks.advance(watermark)
        elif event == "restart":
            subtasks.restart(argument)
        elif event == "savepoint":
            watermark, model.watermark = 0, MIN_WATERMARK
            subtasks.restart(argument, forgets_time=True)
        else:
            subtasks.end_epoch()
        expected = [((key, *sides), time) for (key, _, _, sides), time in model.take()]
        assert sorted(subtasks.take()) == sorted(expected)
    late = Counter((str(side), (key, value)) for key, (side, value) in model.late)
    if tagged:
        found = [(tag, record) for tag in "01" for record in subtasks.side_output(tag)]
        assert Counter(found) == late
    assert subtasks.dropped() == (0 if tagged else late.total())
    subtasks.end_epoch()
    assert subtasks.state() == {}


@dataclass
class IntervalModel:
    """Flink's rules, with every record compared with every other."""

    lower: int
    upper: int
    watermark: int = -(2**63)
    kept: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))
    late: list[Any] = field(default_factory=list)

    def add(self, side: int, key: str, value: int, time: int) -> list[Any]:
        if time < self.watermark:
            self.late.append((str(side), (key, value)))
            return []
        self.kept[side].append((key, value, time))
        pairs = []
        for other_key, other_value, other_time in self.kept[1 - side]:
            one, two = (value, time), (other_value, other_time)
            left, right = (one, two) if side == 0 else (two, one)
            if key == other_key and self.lower <= right[1] - left[1] <= self.upper:
                pairs.append(((left[0], right[0], left[1], right[1]), max(left[1], right[1])))
        return pairs

    def advance(self, watermark: int) -> None:
        self.watermark = watermark
        for records, keep in zip(self.kept, (max(0, self.upper), max(0, -self.lower)), strict=True):
            records[:] = [record for record in records if record[2] + keep > watermark]


@given(
    events=_events,
    bounds=st.tuples(st.integers(-12, 12), st.integers(0, 12)),
    parallelism=st.integers(1, 3),
    tagged=st.booleans(),
)
@example(
    events=[("advance", 0), ("records", (0, [("a", 1, 0)])), ("advance", 0)],
    bounds=(0, 0),
    parallelism=1,
    tagged=False,
)
@settings(max_examples=examples(150), deadline=None)
def test_interval_joins(events, bounds, parallelism, tagged):
    lower, upper = bounds[0], bounds[0] + bounds[1]
    model = IntervalModel(lower, upper)
    subtasks = JoinSubtasks(interval_join(lower, upper, tags=tagged), parallelism)
    watermark = 0
    for event, argument in [*events, ("advance", _END)]:
        expected = []
        if event == "records":
            side, records = argument
            for record in records:
                expected += model.add(side, *record)
            subtasks.add(side, [((key, value), time) for key, value, time in records])
        elif event == "advance":
            watermark = min(_END, watermark + argument)
            # The same watermark once more changes nothing: timers wait for the next one.
            if watermark > model.watermark:
                model.advance(watermark)
            subtasks.advance(watermark)
        elif event == "restart":
            subtasks.restart(argument)
            model.advance(model.watermark)
        else:
            subtasks.end_epoch()
        assert sorted(subtasks.take()) == sorted(expected)
        kept = [Counter((key, time) for key, _, time in side) for side in model.kept]
        state = subtasks.state()
        for name, counts in zip(("interval-join/left", "interval-join/right"), kept, strict=True):
            assert {entry: len(found) for entry, found in state.get(name, {}).items()} == counts
    if tagged:
        found = [(tag, record) for tag in "01" for record in subtasks.side_output(tag)]
        assert Counter(found) == Counter(model.late)
    assert subtasks.dropped() == (0 if tagged else len(model.late))


# Joins without a window, against a database

_rows = st.tuples(st.sampled_from([None, 1, 2, 3]), st.sampled_from([None, 0, 1, 2]))
_changes = st.lists(
    st.one_of(
        # A side, whether rows are added or taken away again, and which.
        st.tuples(st.integers(0, 1), st.just("add"), st.lists(_rows, min_size=1, max_size=4)),
        st.tuples(st.integers(0, 1), st.just("delete"), st.integers(0, 20)),
        st.tuples(st.integers(1, 3), st.just("restart"), st.none()),
        st.tuples(st.just(0), st.just("end of epoch"), st.none()),
    ),
    max_size=14,
)


def _database(tables: list[list[Any]], how: str, condition: str) -> Counter[Any]:
    """The result of SQLite for the same rows."""
    with sqlite3.connect(":memory:") as database:
        for name, rows in zip("lr", tables, strict=True):
            database.execute(f"create table {name} (k, v)")
            database.executemany(f"insert into {name} values (?, ?)", rows)
        query = f"select l.rowid, l.*, r.rowid, r.* from l {how} join r on l.k = r.k{condition}"
        found = database.execute(query).fetchall()
    return Counter(
        (None if row[0] is None else row[1:3], None if row[3] is None else row[4:6])
        for row in found
    )


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@given(
    changes=_changes,
    parallelism=st.integers(1, 3),
    filtered=st.booleans(),
    as_rows=st.booleans(),
    batched=st.booleans(),
)
@settings(max_examples=examples(60), deadline=None)
def test_joins_without_a_window(how, changes, parallelism, filtered, as_rows, batched):
    def less(left: Any, right: Any) -> bool:
        return left[1] is not None and right[1] is not None and left[1] <= right[1]

    def change(row: Any, kind: RowKind) -> Any:
        return Row.of_kind(kind, *row) if as_rows else row

    subtasks = JoinSubtasks(join(how, predicate=less if filtered else None), parallelism)
    tables: list[list[Any]] = [[], []]
    output: list[Row] = []
    for number, what, argument in changes:
        if what == "add":
            tables[number] += argument
            batch = [(change(row, RowKind.INSERT), 0) for row in argument]
            for part in [batch] if batched else [[one] for one in batch]:
                subtasks.add(number, part)
        elif what == "delete" and as_rows and tables[number]:
            row = tables[number].pop(argument % len(tables[number]))
            subtasks.add(number, [(change(row, RowKind.DELETE), 0)])
        elif what == "restart":
            subtasks.restart(number)
        elif what == "end of epoch":
            subtasks.end_epoch()
        for found, _ in subtasks.take():
            sides = [None if side is None else tuple(side) for side in found]
            output.append(Row.of_kind(found.get_row_kind(), *sides))
    expected = _database(tables, how, " and l.v <= r.v" if filtered else "")
    assert fold(output) == expected
    if how == "inner" and not as_rows:
        assert {row.get_row_kind() for row in output} <= {RowKind.INSERT}
