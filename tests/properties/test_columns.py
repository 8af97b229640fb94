"""Columns and rows: a source gives the same records either way, and the job gives the same results.

The same means: the order within a key, timestamps, late records, and keyed state, also after
faults and after a restart from a checkpoint.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common import Duration, Row, Time, Types, WatermarkStrategy
from firesteel.common.columns import ColumnLayout
from firesteel.datastream import KeyedProcessFunction, OutputTag, ProcessFunction, col
from firesteel.datastream.connectors.base import (
    Boundedness,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
)
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows
from firesteel.errors import FiresteelError
from firesteel.testing import Fault, JobHarness
from tests.thoroughness import examples

EVENT = Types.ROW_NAMED(["key", "number", "time"], [Types.STRING(), Types.LONG(), Types.LONG()])
LATE = OutputTag("late", EVENT)


class Once(SplitEnumerator):
    def __init__(self, found: bool) -> None:
        self._found = found

    def discover_splits(self) -> list[SourceSplit]:
        splits = [] if self._found else [SourceSplit("events")]
        self._found = True
        return splits

    def is_complete(self) -> bool:
        # The job continues, so that it can be killed and restored.
        return False

    def snapshot_state(self) -> bool:
        return self._found


class EventsReader(SourceReader):
    def __init__(self, rows: list[Row], layout: ColumnLayout | None) -> None:
        self._rows = rows
        self._columns = None if layout is None else layout.columns_of(rows)
        self._splits: list[SourceSplit] = []

    def add_splits(self, splits: Any) -> None:
        self._splits += splits

    def read(self, limit: int) -> Any:
        if not self._splits:
            return []
        start = self._splits[0].position or 0
        stop = min(start + limit, len(self._rows))
        self._splits = [] if stop == len(self._rows) else [self._splits[0].at(stop)]
        if self._columns is not None:
            return self._columns.slice(start, stop - start)
        return self._rows[start:stop]

    def snapshot_splits(self) -> list[SourceSplit]:
        return self._splits


class Events(Source):
    def __init__(self, rows: list[Row], in_columns: bool, produced: Any = EVENT) -> None:
        self._rows = rows
        self._type = produced
        self.gives_columns = in_columns

    def get_boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        return Once(bool(state))

    def create_reader(self, context: Any) -> SourceReader:
        return EventsReader(self._rows, ColumnLayout(self._type) if self.gives_columns else None)

    def get_produced_type(self) -> Any:
        return self._type


class Numbered(KeyedProcessFunction):
    """Each record with its number among those of its key, and its timestamp."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Any:
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        yield ctx.get_current_key(), number, value.number, ctx.timestamp()


def key_of(row: Any) -> Any:
    return row.key


def added(one: Any, other: Any) -> Row:
    number = (one.number or 0) + (other.number or 0)
    return Row(key=one.key, number=number, time=one.time)


def plus_one(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(1, "number", pc.add(batch.column("number"), 1))


def is_small(batch: pa.RecordBatch) -> pa.Array:
    return pc.less(batch.column("number"), 4)


def twice(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[int]]:
    places = [place for place in range(batch.num_rows) for _ in range(2)]
    return batch.take(pa.array(places, pa.int64())), places


_STEPS: dict[str, Callable[[Any], Any]] = {
    "filter": lambda s: s.filter((col("number") % 3 != 1) | col("number").is_null()),
    "select": lambda s: s.select(
        col("key"), (col("number").fill_null(7) * 2 - 1).alias("number"), col("time")
    ),
    "map_batches": lambda s: s.map_batches(plus_one),
    "filter_batches": lambda s: s.filter_batches(is_small),
    "flat_map_batches": lambda s: s.flat_map_batches(twice),
    "python filter": lambda s: s.filter(lambda row: row.time % 5 != 2),
    "python map": lambda s: s.map(lambda row: Row(row.key, row.number, row.time + 1), EVENT),
    "keyed map_batches": lambda s: s.key_by(key_of).map_batches(plus_one),
    "rebalance": lambda s: s.rebalance(),
    "rescale": lambda s: s.rescale(),
    "broadcast": lambda s: s.broadcast(),
    "global": lambda s: s.global_(),
    "shuffle": lambda s: s.shuffle(),
}
_KEYS: dict[str, Any] = {
    "function": key_of,
    "col": col("key"),
    "cols": (col("key").alias("k"), col("time")),
    "number": col("time") - 3,
}
_TIMES: dict[str, Any] = {
    "col": col("time") * 10,
    "function": lambda row, _: row.time * 10,
}


def job(
    env: Any,
    rows: list[Row],
    steps: list[str],
    time: str,
    late_at: int,
    key: str,
    *,
    in_columns: bool,
) -> Any:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(20)
    ).with_timestamp_assigner(_TIMES[time])
    at_source = strategy if late_at == 0 else WatermarkStrategy.no_watermarks()
    stream = env.from_source(Events(rows, in_columns), at_source, "events").set_parallelism(1)
    for place, step in enumerate(steps, start=1):
        if place == late_at:
            stream = stream.assign_timestamps_and_watermarks(strategy)
        stream = _STEPS[step](stream)
    if late_at > len(steps):
        stream = stream.assign_timestamps_and_watermarks(strategy)
    keyed = stream.key_by(_KEYS[key])
    windows = (
        keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(30)))
        .side_output_late_data(LATE)
        .reduce(added)
    )
    return keyed.process(Numbered()).uid("numbered"), windows, windows.get_side_output(LATE)


def by_key(records: list[Any]) -> dict[Any, list[str]]:
    found: dict[Any, list[str]] = defaultdict(list)
    for record in records:
        found[record[0]].append(repr(record))
    return found


events = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "ß"]), st.none() | st.integers(-5, 5), st.integers(0, 12)
    ).map(lambda fields: Row(key=fields[0], number=fields[1], time=fields[2])),
    min_size=1,
    max_size=25,
)
_faults = st.dictionaries(
    st.integers(1, 8), st.tuples(st.integers(0, 5), st.sampled_from(list(Fault))), max_size=2
)
# Epochs in which an attempt is given up and runs again, or the epoch before which the job is killed
# and restored from a checkpoint.
_disturbances = _faults | st.integers(2, 5)
# Epochs without records, so that attempts that run again reach the end.
_MORE_EPOCHS = 6


class Run:
    """A run of the job in one of the two forms, and its results."""

    def __init__(
        self,
        rows: list[Row],
        parallelism: int,
        budget: int,
        build: Callable[[Any], Any],
        later: Callable[[Any], Any] | None = None,
        later_parallelism: int | None = None,
    ) -> None:
        self._later = later or build
        self._later_parallelism = later_parallelism or parallelism
        self._epochs = -(-len(rows) // budget) + _MORE_EPOCHS
        self._harness = JobHarness(
            build, parallelism=parallelism, records_per_epoch=budget, checkpoint_every=1
        )

    def results(self, disturbance: dict[int, Any] | int) -> tuple[Any, Any]:
        """The results by key, and the keyed state."""
        places = self._harness.places()
        for epoch in range(1, self._epochs + 1):
            if epoch == disturbance:
                path = self._harness.checkpoint()
                self._harness.kill()
                self._harness = self._harness.resume(
                    path, program=self._later, parallelism=self._later_parallelism
                )
            faults = None
            if isinstance(disturbance, dict) and epoch in disturbance:
                place, fault = disturbance[epoch]
                faults = {places[place % len(places)]: fault}
            self._harness.run_epoch(faults)
        state = self._harness.keyed_state()
        found = list(map(by_key, self._harness.collected_by_stream))
        self._harness.cancel()
        return found, state


@given(
    rows=events,
    steps=st.lists(st.sampled_from(list(_STEPS)), max_size=4),
    time=st.sampled_from(list(_TIMES)),
    late_at=st.integers(0, 5),
    key=st.sampled_from(list(_KEYS)),
    parallelism=st.integers(1, 2),
    budget=st.integers(1, 9),
    disturbance=_disturbances,
)
@settings(max_examples=examples(45), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_columns_give_what_rows_give(
    rows: list[Row],
    steps: list[str],
    time: str,
    late_at: int,
    key: str,
    parallelism: int,
    budget: int,
    disturbance: dict[int, Any] | int,
) -> None:
    def run(*, in_columns: bool, disturbance: dict[int, Any] | int) -> Any:
        def build(env: Any) -> Any:
            return job(env, rows, steps, time, late_at, key, in_columns=in_columns)

        return Run(rows, parallelism, budget, build).results(disturbance)

    by_rows, state = run(in_columns=False, disturbance={})
    assert run(in_columns=True, disturbance={}) == (by_rows, state)
    assert run(in_columns=True, disturbance=disturbance)[1] == state


AMOUNT = Types.ROW_NAMED(
    ["key", "number", "price", "time"],
    [Types.STRING(), Types.LONG(), Types.DOUBLE(), Types.LONG()],
)
LATE_AMOUNT, LATE_NARROW = OutputTag("late", AMOUNT), OutputTag("late of any type")
_PRICES = [0.1, 0.2, 0.3, 1e16, -1e16, 0.0, -0.0, float("inf"), float("nan")]


def aggregates(
    env: Any,
    rows: list[Row],
    kind: str,
    field: str,
    key: str,
    lateness: int,
    assigner: Any,
    *,
    in_columns: bool,
) -> Any:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(20)
    ).with_timestamp_assigner(col("time") * 10)
    stream = env.from_source(Events(rows, in_columns, AMOUNT), strategy, "amounts")
    stream.set_parallelism(1)
    late = LATE_AMOUNT
    if key == "narrow":
        # Sliding windows work on columns if there are no other fields.
        stream, late = stream.select(col("key"), col(field)), LATE_NARROW
    keyed = stream.key_by(_KEYS.get(key, col("key")))
    windows = keyed.window(assigner).allowed_lateness(lateness).side_output_late_data(late)
    rolling = getattr(keyed, kind)(field).uid("rolling")
    fired = getattr(windows, kind)(field).uid("windows")
    stamped = fired.process(Stamped())
    return rolling, stamped, fired.get_side_output(late)


class Stamped(ProcessFunction):
    """Each record after its key and timestamp."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value.key, ctx.timestamp(), value


def as_text(state: Any) -> Any:
    """The state as text, because NaN does not equal itself, and the two zeros are equal."""
    if isinstance(state, dict):
        return sorted((repr(key), as_text(value)) for key, value in state.items())
    return repr(state)


_ASSIGNERS = [
    TumblingEventTimeWindows.of(Time.milliseconds(30)),
    SlidingEventTimeWindows.of(Time.milliseconds(40), Time.milliseconds(20)),
    SlidingEventTimeWindows.of(Time.milliseconds(30), Time.milliseconds(20)),
    SlidingEventTimeWindows.of(Time.milliseconds(60), Time.milliseconds(10)),
]
amounts = st.lists(
    st.builds(
        Row,
        key=st.none() | st.sampled_from(["a", "b", "ß"]),
        number=st.integers(-5, 5),
        price=st.sampled_from(_PRICES),
        time=st.integers(0, 12),
    ),
    min_size=1,
    max_size=40,
)


@given(
    rows=amounts,
    kind=st.sampled_from(["sum", "min", "max"]),
    field=st.sampled_from(["number", "number", "price"]),
    key=st.sampled_from(["col", "number", "narrow", "narrow"]),
    lateness=st.sampled_from([0, 0, 20]),
    assigner=st.sampled_from(_ASSIGNERS),
    parallelism=st.integers(1, 2),
    later_parallelism=st.integers(1, 3),
    budget=st.integers(1, 25),
    disturbance=_disturbances,
)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_aggregates_of_columns_are_those_of_rows(
    rows: list[Row],
    kind: str,
    field: str,
    key: str,
    lateness: int,
    assigner: Any,
    parallelism: int,
    later_parallelism: int,
    budget: int,
    disturbance: dict[int, Any] | int,
) -> None:
    def run(first: bool, later: bool) -> Any:
        def build(in_columns: bool) -> Callable[[Any], Any]:
            return lambda env: aggregates(
                env, rows, kind, field, key, lateness, assigner, in_columns=in_columns
            )

        one = Run(rows, parallelism, budget, build(first), build(later), later_parallelism)
        found, state = one.results(disturbance)
        if isinstance(assigner, SlidingEventTimeWindows):
            # Keys with records out of order have runs in the one form, and panes in the other.
            state.pop("windows", None)
        return found, as_text(state)

    by_rows = run(False, False)
    assert run(True, True) == by_rows
    if isinstance(disturbance, int):
        # A checkpoint of one way continues in the other one.
        assert run(True, False) == by_rows
        assert run(False, True) == by_rows


_SMALL = Types.ROW_NAMED(["key", "number", "time"], [Types.STRING(), Types.SHORT(), Types.LONG()])
_LARGE = Types.ROW_NAMED(["key", "number", "time"], [Types.STRING(), Types.LONG(), Types.LONG()])


@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize(
    ("produced", "numbers"),
    [(_SMALL, [2**15 - 1, 1]), (_LARGE, [2**62, 2**62]), (_LARGE, [1, None])],
)
def test_errors_of_columns_are_those_of_rows(
    windowed: bool, produced: Any, numbers: list[Any]
) -> None:
    def error(in_columns: bool) -> str:
        def build(env: Any) -> Any:
            rows = [Row(key="a", number=number, time=1) for number in numbers]
            strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
                col("time")
            )
            stream = env.from_source(Events(rows, in_columns, produced), strategy, "numbers")
            keyed = stream.key_by(col("key"))
            if windowed:
                keyed = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(5)))
            return keyed.sum("number")

        def run() -> None:
            harness = JobHarness(build)
            harness.run_epoch()
            harness.stop(drain=True)

        with pytest.raises(FiresteelError) as raised:
            run()
        return str(raised.value)

    assert error(in_columns=True) == error(in_columns=False)


def test_a_window_of_columns_may_exceed_64_bits_in_between() -> None:
    def build(env: Any) -> Any:
        rows = [Row(key="a", number=n, time=1) for n in (2**62, 2**62, -(2**62), -1)]
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            col("time")
        )
        stream = env.from_source(Events(rows, True, _LARGE), strategy, "numbers")
        windows = stream.key_by(col("key")).window(
            TumblingEventTimeWindows.of(Time.milliseconds(5))
        )
        return windows.sum("number")

    harness = JobHarness(build)
    harness.run_epoch()
    harness.stop(drain=True)
    assert [tuple(row) for row in harness.collected] == [("a", 2**62 - 1, 1)]
