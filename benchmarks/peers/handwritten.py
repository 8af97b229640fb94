"""Hand-written PySpark: each case written for this case only, as the practical limit.

The tasks of the first stage create records and shuffle them as pickled buffers, with mapInArrow and
repartitionById. The loops are the simplest ones that call the functions of the case. Buffers,
codec, garbage collector and Spark's settings are those that are best for Firesteel too. The whole
data set is one Spark job, and the state of a reduction is a dict that is lost with its task. There are no
epochs, no checkpoints, no safe retries, no watermarks and no back pressure. The difference to
Firesteel is the cost of these features.
"""

import gc
import pickle
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the conventional name

from benchmarks.cases import (
    CASES,
    Case,
    CountingSink,
    FanOut,
    Function,
    KeyedMap,
    MapFilter,
    Outcome,
    Reduce,
    Sum,
    Union,
    WindowCount,
)
from benchmarks.measure import check_results, parse_arguments, report_versions, run_cases
from benchmarks.peers.job_session import job_session
from benchmarks.peers.spark_session import map_in_arrow

# Records per buffer, or fewer if the buffer would exceed its size in bytes. More records leave the
# cache of the core before they are pickled, and fewer records cause more rows. Measured with the
# Python part alone.
BUFFER_BYTES = 64 * 1024
BUFFER_RECORDS = 2_048
FIRST_RECORDS = 1_024
# Size of the batches of rows for Spark. A batch costs as much as a few hundred records.
BATCH_BYTES = 1 << 20
# Compression pays for large buffers, because Spark copies them a dozen times.
COMPRESSED_FROM = 32 * 1024
CODEC = "lz4_raw"
BUFFERS = pa.schema([("target", pa.int32()), ("size", pa.int32()), ("payload", pa.binary())])
BUFFERS_DDL = "target int, size int, payload binary"
ACKS = pa.schema([("payload", pa.binary())])
ACKS_DDL = "payload binary"

Batches = Iterator[pa.RecordBatch]
Invoke = Callable[[Any], None]


class Row(NamedTuple):
    """A buffer in transit. `size` is its uncompressed size, or 0 if it is not compressed."""

    target: int
    size: int
    payload: bytes


def shares(batches: Batches, records: int, parallelism: int) -> Iterator[range]:
    """Yield the range of numbers for each slot in the rows."""
    for batch in batches:
        for slot in batch.column(0).to_pylist():
            yield range(records * slot // parallelism, records * (slot + 1) // parallelism)


def buffer_row(target: int, values: list[Any]) -> tuple[Row, int]:
    """Return the buffer and its size before compression."""
    payload = pickle.dumps(values, 5)
    size = len(payload)
    if size < COMPRESSED_FROM:
        return Row(target, 0, payload), size
    return Row(target, size, pa.compress(payload, CODEC, asbytes=True)), size


def to_batch(rows: list[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, BUFFERS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=BUFFERS)


def send_by_key(
    batches: Batches, *, key: Function, make: Function | None, records: int, parallelism: int
) -> Iterator[pa.RecordBatch]:
    """First stage of the keyed cases: create records and add each to the buffer of its slot."""
    seldom_look_for_cycles()
    rows: list[Row] = []
    waiting = 0
    limit = FIRST_RECORDS
    for share in shares(batches, records, parallelism):
        while share:
            numbers, share = share[:limit], share[limit:]
            buffers: list[list[Any]] = [[] for _ in range(parallelism)]
            appends = [buffer.append for buffer in buffers]
            if make is None:
                for value in numbers:
                    appends[hash(key(value)) % parallelism](value)
            else:
                for number in numbers:
                    value = make(number)
                    appends[hash(key(value)) % parallelism](value)
            largest = 1
            for target, buffer in enumerate(buffers):
                if buffer:
                    row, size = buffer_row(target, buffer)
                    rows.append(row)
                    waiting += len(row.payload)
                    largest = max(largest, size)
            limit = max(1, min(BUFFER_RECORDS, BUFFER_BYTES * len(numbers) // largest))
            if waiting >= BATCH_BYTES:
                yield to_batch(rows)
                rows, waiting = [], 0
    if rows:
        yield to_batch(rows)


def seldom_look_for_cycles() -> None:
    """Configure the garbage collector as in a slot of Firesteel.

    Records are short-lived and seldom part of cycles.
    """
    gc.set_threshold(100_000, 20, 50)


def received(batches: Batches) -> Iterator[list[Any]]:
    for batch in batches:
        sizes = batch.column(1).to_pylist()
        for size, payload in zip(sizes, batch.column(2), strict=True):
            buffer = payload.as_buffer()
            yield pickle.loads(pa.decompress(buffer, size, CODEC) if size else buffer)


def reduce_loop(case: Reduce, buffers: Iterator[list[Any]], invoke: Invoke) -> None:
    key, combine = case.key, case.combine
    state: dict[Any, Any] = {}
    find = state.get
    for values in buffers:
        for value in values:
            group = key(value)
            reduced = find(group)
            if reduced is not None:
                value = combine(reduced, value)
            state[group] = value
            invoke(value)


def sum_loop(case: Sum, buffers: Iterator[list[Any]], invoke: Invoke) -> None:
    key = case.key
    state: dict[Any, Any] = {}
    find = state.get
    for values in buffers:
        for value in values:
            group = key(value)
            before = find(group)
            if before is not None:
                value = (value[0], before[1] + value[1])
            state[group] = value
            invoke(value)


def map_loop(case: KeyedMap, buffers: Iterator[list[Any]], invoke: Invoke) -> None:
    then = case.then
    for values in buffers:
        for value in values:
            invoke(then(value))


def map_filter_loop(case: MapFilter, ranges: Iterator[range], invoke: Invoke) -> None:
    make, keep = case.make, case.keep
    for numbers in ranges:
        for number in numbers:
            value = make(number)
            if keep(value):
                invoke(value)


def union_loop(case: Union, ranges: Iterator[range], invoke: Invoke, half: int) -> None:
    make, other, then = case.make, case.other, case.then
    for numbers in ranges:
        cut = max(0, half - numbers.start)
        for number in numbers[:cut]:
            invoke(then(make(number)))
        for number in numbers[cut:]:
            invoke(then(other(number)))


def fan_out_loop(case: FanOut, ranges: Iterator[range], invokes: list[Invoke]) -> None:
    make = case.make
    (first, second, third), (sink_1, sink_2, sink_3) = case.branches, invokes
    for numbers in ranges:
        for number in numbers:
            value = make(number)
            sink_1(first(value))
            sink_2(second(value))
            sink_3(third(value))


class CheckingSink(CountingSink):
    """The sink of checked runs."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome = Outcome()

    def invoke(self, value: Any, context: Any = None) -> None:
        self.outcome.add(value)


def ack(sinks: list[CountingSink]) -> pa.RecordBatch:
    outcomes = [
        sink.outcome if isinstance(sink, CheckingSink) else Outcome(sink.count) for sink in sinks
    ]
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(outcomes)])], schema=ACKS)


def keyed_stage(
    batches: Batches, *, case: Reduce | Sum | KeyedMap, sink: type[CountingSink]
) -> Iterator[pa.RecordBatch]:
    seldom_look_for_cycles()
    end = sink()
    match case:
        case Reduce():
            reduce_loop(case, received(batches), end.invoke)
        case Sum():
            sum_loop(case, received(batches), end.invoke)
        case KeyedMap():
            map_loop(case, received(batches), end.invoke)
    yield ack([end])


def single_stage(
    batches: Batches,
    *,
    case: MapFilter | Union | FanOut,
    sink: type[CountingSink],
    records: int,
    parallelism: int,
) -> Iterator[pa.RecordBatch]:
    """Run a case without an exchange: one stage from the numbers to the sinks."""
    seldom_look_for_cycles()
    sinks = [sink()]
    ranges = shares(batches, records, parallelism)
    match case:
        case MapFilter():
            map_filter_loop(case, ranges, sinks[0].invoke)
        case Union():
            union_loop(case, ranges, sinks[0].invoke, records // 2)
        case FanOut():
            sinks = [sink() for _ in case.branches]
            fan_out_loop(case, ranges, [end.invoke for end in sinks])
    yield ack(sinks)


class Handwritten:
    """Runs cases as Spark jobs of one session."""

    def __init__(self, session: SparkSession, parallelism: int) -> None:
        self.session = session
        self.parallelism = parallelism

    def plan(self, case: Case, records: int, sink: type[CountingSink]) -> DataFrame:
        slots = self.session.range(0, self.parallelism, 1, self.parallelism)
        if isinstance(case, MapFilter | Union | FanOut):
            stage = partial(
                single_stage, case=case, sink=sink, records=records, parallelism=self.parallelism
            )
            return map_in_arrow(slots, stage, ACKS_DDL)
        if not isinstance(case, Reduce | Sum | KeyedMap):
            raise TypeError(f"{case.name} is of an unknown shape, {type(case).__name__}")
        make = None if isinstance(case, Reduce) else case.make
        send = partial(
            send_by_key, key=case.key, make=make, records=records, parallelism=self.parallelism
        )
        buffers = map_in_arrow(slots, send, BUFFERS_DDL)
        exchanged = buffers.repartitionById(self.parallelism, F.col("target"))
        return map_in_arrow(exchanged, partial(keyed_stage, case=case, sink=sink), ACKS_DDL)

    def outcome(self, case: Case, records: int, sink: type[CountingSink]) -> Outcome:
        acks = self.plan(case, records, sink).collect()
        return Outcome().merge(outcome for row in acks for outcome in pickle.loads(row.payload))

    def run_checked(self, case: Case, records: int) -> Outcome:
        return self.outcome(case, records, CheckingSink)

    def run(self, case: Case, records: int) -> float:
        begin = time.perf_counter()
        outcome = self.outcome(case, records, CountingSink)
        seconds = time.perf_counter() - begin
        check_results(case, outcome.count, records)
        return seconds


def main() -> None:
    arguments = parse_arguments("the cases written by hand in PySpark")
    report_versions("pyspark", "pyarrow")
    session = job_session(arguments.parallelism)
    handwritten = Handwritten(session, arguments.parallelism)
    sizes = {case.name: case.records for case in CASES if not isinstance(case, WindowCount)}
    run_cases(arguments, handwritten.run, handwritten.run_checked, records=sizes)
    session.stop()


if __name__ == "__main__":
    main()
