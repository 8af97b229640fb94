"""Jobs whose snapshots were written by earlier versions, and are restored by the present one.

This module uses only names that users can import, so it runs on every version. Change a job here
only together with new snapshots: a restored snapshot must find the operators that wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from firesteel.common import Configuration, Duration, Encoder, Row, RowKind, Types
from firesteel.common.serialization import SimpleStringSchema
from firesteel.common.time import Instant, Time
from firesteel.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from firesteel.datastream import (
    AggregateFunction,
    CoGroupFunction,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    Order,
    OutputTag,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    StreamExecutionEnvironment,
    TwoPhaseCommitSinkFunction,
    WindowFunction,
)
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    RollingPolicy,
    StreamFormat,
)
from firesteel.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaTopicPartition,
)
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.functions import AllWindowFunction, CheckpointedFunction
from firesteel.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from firesteel.datastream.window import (
    ContinuousEventTimeTrigger,
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    DeltaTrigger,
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    GlobalWindow,
    GlobalWindows,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    SlidingEventTimeWindows,
    TimeEvictor,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from firesteel.testing import JobHarness, ListSink, Pause, ScriptedSource, Timed

VARIANTS = {
    "savepoint": ("hashmap", "savepoint"),
    "checkpoint": ("hashmap", "checkpoint"),
    "rocksdb-checkpoint": ("rocksdb", "checkpoint"),
}
"""The kinds of snapshots: their state backend, and how they are taken. Both backends write the same
savepoints."""

RECORDS = 40
KEYS = 3
RECORDS_PER_EPOCH = 7
EPOCHS_BEFORE = 3
LINES = 60


@dataclass(frozen=True)
class Reading:
    """A class of the user's, which state holds pickled."""

    sensor: str
    value: int


@dataclass(frozen=True)
class SnapshotJob:
    """A program, and the outputs of its sinks that lie in a directory.

    ``build`` gets the environment and a directory that the job may use. What it returns is
    collected. ``visible`` reads the records that the sinks have made visible there. ``prepare``
    fills the directory before the job starts. ``variants`` are keys of ``VARIANTS``.
    """

    name: str
    build: Callable[[StreamExecutionEnvironment, Path], Any]
    visible: Callable[[Path], list[Any]] = lambda directory: []
    prepare: Callable[[Path], None] = lambda directory: None
    variants: tuple[str, ...] = ("savepoint", "checkpoint")

    def harness(self, directory: Path, backend: str, **arguments: Any) -> JobHarness:
        settings = {
            "state.backend.type": backend,
            "restart-strategy.type": "none",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        }
        if path := arguments.pop("restore", None):
            settings["execution.state-recovery.path"] = str(path)
        arguments.setdefault("parallelism", 2)
        return JobHarness(
            lambda env: self.build(env, directory),
            records_per_epoch=RECORDS_PER_EPOCH,
            configuration=Configuration.from_dict(settings),
            checkpoint_every=0,
            **arguments,
        )

    def results(self, harness: JobHarness, directory: Path) -> dict[str, list[str]]:
        """All that came out, as sorted text."""
        streams = {
            f"stream {number}": records
            for number, records in enumerate(harness.collected_by_stream)
        }
        streams["sinks"] = self.visible(directory)
        return {name: sorted(map(repr, records)) for name, records in streams.items()}


def timed(
    env: StreamExecutionEnvironment, name: str, records: Iterable[Any], pause: Any = None
) -> Any:
    """The records at 0, 100, 200, ... ms, with watermarks; ``pause`` comes in the last quarter."""
    script: list[Any] = [Timed(record, 100 * number) for number, record in enumerate(records)]
    if pause is not None:
        script.insert(len(script) * 3 // 4, pause)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    return env.from_source(ScriptedSource(script), strategy, name).uid(name)


def pairs() -> list[tuple[int, int]]:
    return [(number % KEYS, number) for number in range(RECORDS)]


# Keyed state


class Sum(ReduceFunction):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


class Mean(AggregateFunction):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


def odd_values(number: int) -> list[Any]:
    """Values that pickle stores by the names of classes, ours among them."""
    return [
        Row(number, "text"),
        Row(name="x", count=number),
        Row.of_kind(RowKind.UPDATE_BEFORE, number),
        RowKind.DELETE,
        Instant.of_epoch_milli(number),
        Time.seconds(number),
        Duration.of_seconds(number),
        TimeWindow(number, number + 1),
        GlobalWindow(),
        KafkaTopicPartition("topic", number),
        OutputTag("tag", Types.INT()),
        Reading("sensor", number),
        date(2024, 3, 9),
        datetime(2024, 3, 9, tzinfo=UTC),
    ]


class KeepEverything(KeyedProcessFunction):
    """One state of each kind, with declared types and pickled, with time to live and without."""

    def open(self, runtime_context: Any) -> None:
        def with_ttl(descriptor: Any) -> Any:
            ttl = StateTtlConfig.new_builder(Time.seconds(10)).build()
            descriptor.enable_time_to_live(ttl)
            return descriptor

        context = runtime_context
        self.value = context.get_state(ValueStateDescriptor("value", Types.LONG()))
        self.row = context.get_state(
            ValueStateDescriptor("row", Types.ROW_NAMED(["n", "s"], [Types.LONG(), Types.STRING()]))
        )
        self.any = context.get_state(ValueStateDescriptor("any", Types.PICKLED_BYTE_ARRAY()))
        self.list = context.get_list_state(ListStateDescriptor("list", Types.LONG()))
        self.anys = context.get_list_state(ListStateDescriptor("anys", Types.PICKLED_BYTE_ARRAY()))
        self.map = context.get_map_state(MapStateDescriptor("map", Types.STRING(), Types.LONG()))
        self.windows = context.get_map_state(
            MapStateDescriptor("windows", Types.PICKLED_BYTE_ARRAY(), Types.PICKLED_BYTE_ARRAY())
        )
        self.sum = context.get_reducing_state(ReducingStateDescriptor("sum", Sum(), Types.LONG()))
        self.mean = context.get_aggregating_state(
            AggregatingStateDescriptor("mean", Mean(), Types.TUPLE([Types.LONG(), Types.LONG()]))
        )
        self.short_value = context.get_state(
            with_ttl(ValueStateDescriptor("short value", Types.LONG()))
        )
        self.short_list = context.get_list_state(
            with_ttl(ListStateDescriptor("short list", Types.PICKLED_BYTE_ARRAY()))
        )
        self.short_map = context.get_map_state(
            with_ttl(MapStateDescriptor("short map", Types.STRING(), Types.LONG()))
        )
        self.short_sum = context.get_reducing_state(
            with_ttl(ReducingStateDescriptor("short sum", Sum(), Types.LONG()))
        )

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        _, number = value
        yield self.everything(ctx, "record")
        self.value.update(number)
        self.row.update(Row(n=number, s=f"row {number}"))
        self.any.update(odd_values(number))
        self.list.add(number)
        for one in odd_values(number)[:3]:
            self.anys.add(one)
        self.map.put(f"entry {number % 2}", number)
        self.windows.put(TimeWindow(number % 2, 5), Reading("in a map", number))
        self.sum.add(number)
        self.mean.add(number)
        self.short_value.update(number)
        self.short_list.add(Reading("short", number))
        self.short_map.put(f"entry {number % 2}", number)
        self.short_sum.add(number)
        timers = ctx.timer_service()
        # These fire at the end: chunks of a source differ between runs, and with them watermarks.
        timers.register_event_time_timer(100_000 + number)
        # All of them fire during the pause.
        if number < RECORDS // 2:
            timers.register_processing_time_timer(9_000 + number)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield self.everything(ctx, f"{ctx.time_domain().name} {timestamp}")

    def everything(self, ctx: Any, why: str) -> Any:
        return (
            ctx.get_current_key(),
            why,
            self.value.value(),
            self.row.value(),
            self.any.value(),
            list(self.list.get() or ()),
            list(self.anys.get() or ()),
            sorted(self.map.items()),
            sorted(map(repr, self.windows.items())),
            self.sum.get(),
            self.mean.get(),
            self.short_value.value(),
            list(self.short_list.get() or ()),
            sorted(self.short_map.items()),
            self.short_sum.get(),
        )


def keyed_state(env: StreamExecutionEnvironment, directory: Path) -> Any:
    # Time to live passes for what is not written again after the pause.
    records = timed(env, "numbers", pairs(), Pause(12.0))
    by_number = records.key_by(lambda pair: pair[0], Types.LONG())
    by_tuple = records.key_by(lambda pair: ("key", pair[0]))
    by_row = records.key_by(lambda pair: Row(pair[0], "key"))
    return (
        by_number.process(KeepEverything()).uid("by number"),
        by_tuple.process(KeepEverything()).uid("by tuple"),
        by_row.process(KeepEverything()).uid("by row"),
    )


# Operator state


RULES = MapStateDescriptor("rules", Types.STRING(), Types.PICKLED_BYTE_ARRAY())


class Seen(MapFunction, CheckpointedFunction):
    """Keeps what it has seen in a list or in a union list."""

    def __init__(self, union: bool) -> None:
        self.union = union

    def initialize_state(self, context: Any) -> None:
        store = context.get_operator_state_store()
        get = store.get_union_list_state if self.union else store.get_list_state
        self.typed = get(ListStateDescriptor("typed", Types.LONG()))
        self.pickled = get(ListStateDescriptor("pickled", Types.PICKLED_BYTE_ARRAY()))
        self.numbers = list(self.typed.get())
        self.readings = list(self.pickled.get())

    def snapshot_state(self, context: Any) -> None:
        self.typed.update(self.numbers)
        self.pickled.update(self.readings)

    def map(self, value: Any) -> Any:
        self.numbers.append(value[1])
        self.readings.append(Row(value[1], Reading("seen", value[1])))
        return value, len(self.numbers), len(self.readings), self.readings[-2:]


class ApplyRules(KeyedBroadcastProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield value, sorted(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        number = value[1]
        ctx.get_broadcast_state(RULES).put(f"rule {number % 4}", Reading("rule", number))


def operator_state(env: StreamExecutionEnvironment, directory: Path) -> Any:
    records = timed(env, "numbers", pairs())
    # One subtask: the order in which two share a stream is not part of what is tested.
    seen = records.map(Seen(union=False)).uid("list").set_parallelism(1)
    union = records.map(Seen(union=True)).uid("union").set_parallelism(1)
    rules = timed(env, "rules", pairs()[:20])
    keyed = records.key_by(lambda pair: pair[0], Types.LONG())
    applied = keyed.connect(rules.broadcast(RULES)).process(ApplyRules()).uid("rules applied")
    return seen, union, applied


# Windows


class Tell(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        count = context.window_state().get_state(ValueStateDescriptor("fired", Types.LONG()))
        total = context.global_state().get_state(ValueStateDescriptor("total", Types.LONG()))
        count.update((count.value() or 0) + 1)
        total.update((total.value() or 0) + 1)
        yield key, context.window(), count.value(), total.value(), sorted(elements)


class TellOfAll(WindowFunction):
    def apply(self, key: Any, window: Any, inputs: Any) -> Iterator[Any]:
        yield key, window, sorted(inputs)


class GapOfRecord(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return 150 + 50 * int(element[0])


def windows(env: StreamExecutionEnvironment, directory: Path) -> Any:
    # Gaps make sessions end.
    values = [(number % KEYS, number) for number in range(RECORDS)]
    script: list[Any] = [Timed(value, 100 * n + 1_000 * (n // 8)) for n, value in enumerate(values)]
    # Lets windows of processing time end.
    script.insert(RECORDS * 3 // 4, Pause(12.0))
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    records = env.from_source(ScriptedSource(script), strategy, "events").uid("events")
    keyed = records.key_by(lambda pair: pair[0], Types.LONG())
    tumbling = TumblingEventTimeWindows.of(Time.seconds(2))
    sliding = SlidingEventTimeWindows.of(Time.seconds(2), Time.milliseconds(500))
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(500))
    dynamic = DynamicEventTimeSessionWindows.with_dynamic_gap(GapOfRecord())
    continuous = ContinuousEventTimeTrigger.of(Time.milliseconds(700))

    def add(left: Any, right: Any) -> Any:
        return left[0], left[1] + right[1]

    streams = {
        "tumbling sums": keyed.window(tumbling).reduce(add),
        "tumbling means": keyed.window(tumbling).aggregate(MeanOfPairs(), Tell()),
        "tumbling records": keyed.window(tumbling).process(Tell()),
        "tumbling early": keyed.window(tumbling).trigger(continuous).process(Tell()),
        "tumbling updates": keyed.window(tumbling).output_mode("update").sum(1),
        "tumbling complete": keyed.window(tumbling).output_mode("complete").sum(1),
        "tumbling lateness": keyed.window(tumbling).allowed_lateness(3_000).reduce(add),
        "sliding sums": keyed.window(sliding).reduce(add),
        "sliding means": keyed.window(sliding).aggregate(MeanOfPairs()),
        "sliding records": keyed.window(sliding).apply(TellOfAll()),
        "sessions sums": keyed.window(sessions).reduce(add),
        "sessions records": keyed.window(sessions).process(TellOnce()),
        "sessions dynamic": keyed.window(dynamic).apply(TellOfAll()),
        "counts": keyed.count_window(5).apply(TellOfAll()),
        "counts sliding": keyed.count_window(6, 4).apply(TellOfAll()),
        "counts tumbling": keyed.window(CountTumblingWindowAssigner.of(4)).apply(TellOfAll()),
        "counts overlapping": keyed.window(CountSlidingWindowAssigner.of(4, 3)).apply(TellOfAll()),
        "global": keyed.window(GlobalWindows.create())
        .trigger(CountTrigger.of(5))
        .apply(TellOfAll()),
        "clock": keyed.window(TumblingProcessingTimeWindows.of(Time.seconds(10))).apply(
            TellOfAll()
        ),
        "evicted": keyed.window(sliding).evictor(CountEvictor.of(2)).apply(TellOfAll()),
        "evicted by time": keyed.window(sessions)
        .evictor(TimeEvictor.of(Time.milliseconds(300)))
        .apply(TellOfAll()),
        "deltas": keyed.window(GlobalWindows.create())
        .trigger(PurgingTrigger.of(DeltaTrigger.of(10.0, distance)))
        .apply(TellOfAll()),
        "all": records.window_all(tumbling).apply(TellOfAllKeys()),
    }
    return tuple(stream.uid(name) for name, stream in streams.items())


def distance(old: Any, new: Any) -> float:
    return float(new[1] - old[1])


class TellOfAllKeys(AllWindowFunction):
    def apply(self, window: Any, inputs: Any) -> Iterator[Any]:
        yield window, sorted(inputs)


class MeanOfPairs(Mean):
    def add(self, value: Any, accumulator: tuple[int, int]) -> tuple[int, int]:
        return super().add(value[1], accumulator)


class TellOnce(ProcessWindowFunction):
    """Without state of a window, which merging windows refuse."""

    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        total = context.global_state().get_state(ValueStateDescriptor("total", Types.LONG()))
        total.update((total.value() or 0) + 1)
        yield key, context.window(), total.value(), sorted(elements)


# Aggregations of keyed streams, and whole partitions


def aggregations(env: StreamExecutionEnvironment, directory: Path) -> Any:
    """Has no uids: the ids that operators get from their place in the program must stay."""
    records = env.from_collection(pairs(), Types.TUPLE([Types.LONG(), Types.LONG()]))
    objects = records.map(lambda pair: Row(pair[0], pair[1])).set_parallelism(1)
    keyed = records.key_by(lambda pair: pair[0], Types.LONG())
    keyed_objects = objects.key_by(lambda row: Row(row[0], "key"))
    return (
        keyed.reduce(lambda left, right: (left[0], left[1] + right[1])),
        keyed_objects.reduce(lambda left, right: Row(left[0], left[1] + right[1])),
        keyed.fold("", lambda text, pair: f"{text},{pair[1]}"),
        keyed.sum(1),
        keyed.max_by(1),
        keyed.output_mode("update").sum(1),
        keyed.output_mode("complete").sum(1),
        keyed.output_mode("append").sum(1),
        keyed.full_window_partition().sort_partition(1, Order.DESCENDING),
    )


# Joins


class Both(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield left, right, ctx.get_left_timestamp(), ctx.get_right_timestamp()


class Together(CoGroupFunction):
    def co_group(self, first: Any, second: Any) -> Iterator[Any]:
        yield sorted(first), sorted(second)


def joins(env: StreamExecutionEnvironment, directory: Path) -> Any:
    left = timed(env, "left", pairs())
    right = timed(env, "right", [Row(number % KEYS, f"r{number}") for number in range(RECORDS)])
    tumbling = TumblingEventTimeWindows.of(Time.seconds(1))
    sliding = SlidingEventTimeWindows.of(Time.seconds(1), Time.milliseconds(500))
    sessions = EventTimeSessionWindows.with_gap(Time.milliseconds(200))

    def both(one: Any, other: Any) -> Any:
        return one, other

    def joined(assigner: Any) -> Any:
        pair = left.join(right).where(lambda one: one[0]).equal_to(lambda other: other[0])
        return pair.window(assigner).apply(both)

    def grouped(assigner: Any) -> Any:
        pair = left.co_group(right).where(lambda one: one[0]).equal_to(lambda other: str(other[1]))
        return pair.window(assigner).apply(Together())

    left_keyed = left.key_by(lambda one: one[0])
    right_keyed = right.key_by(lambda other: other[0])
    interval = left_keyed.interval_join(right_keyed).between(
        Time.milliseconds(-350), Time.milliseconds(450)
    )
    # Only the first records: pairs without a window are many.
    few = left.filter(lambda one: one[1] < 24).uid("few")
    streams = {
        "tumbling join": joined(tumbling),
        "sliding join": joined(sliding),
        "session join": joined(sessions),
        "tumbling group": grouped(tumbling),
        "sliding group": grouped(sliding),
        "interval": interval.process(Both()),
        "inner": few.join_on(right)
        .where(lambda one: one[1])
        .equal_to(lambda other: other[0])
        .apply(both),
        "left outer": few.join_on(right, "left")
        .where(lambda one: one[1])
        .equal_to(lambda other: other[0])
        .apply(),
        "full outer": few.join_on(right, "full")
        .where(lambda one: f"r{one[1] + 3}")
        .equal_to(lambda other: other[1])
        .apply(),
    }
    return tuple(stream.uid(name) for name, stream in streams.items())


# Files


def write_lines(directory: Path) -> None:
    (directory / "input").mkdir(parents=True)
    for name in ("a.txt", "b.txt"):
        lines = [f"line {number} of {name}" for number in range(LINES)]
        (directory / "input" / name).write_text("\n".join(lines) + "\n")


def files(env: StreamExecutionEnvironment, directory: Path) -> Any:
    source = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), str(directory / "input")
    ).build()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").uid("lines")
    sink = (
        FileSink.for_row_format(str(directory / "output"), Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        # A part stays open at a checkpoint unless it is large enough.
        .with_rolling_policy(RollingPolicy.default_rolling_policy(300, 10**9, 10**9))
        .build()
    )
    lines.sink_to(sink).uid("output")
    return lines


def finished_lines(directory: Path) -> list[Any]:
    return [
        line
        for file in sorted((directory / "output").glob("part-*"))
        for line in file.read_text().splitlines()
    ]


# Transactions


class FileTransactions(TwoPhaseCommitSinkFunction[Any, Any, Any]):
    """Transactions are files: ``open``, renamed to ``prepared``, renamed to ``committed``."""

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.directory = directory

    def begin_transaction(self) -> Reading:
        number = len(list(self.directory.glob("begun-*")))
        (self.directory / f"begun-{number}").touch()
        self.file(number, "open").touch()
        return Reading("transaction", number)

    def invoke(  # type: ignore[override]  # Flink's overload of the name
        self, transaction: Any, value: Any, context: Any
    ) -> None:
        with self.file(transaction.value, "open").open("a") as file:
            file.write(json.dumps(value) + "\n")

    def pre_commit(self, transaction: Any) -> None:
        number = transaction.value
        self.file(number, "open").rename(self.file(number, "prepared"))

    def commit(self, transaction: Any) -> None:
        number = transaction.value
        if not self.file(number, "committed").exists():
            self.file(number, "prepared").rename(self.file(number, "committed"))

    def abort(self, transaction: Any) -> None:
        for phase in ("open", "prepared"):
            self.file(transaction.value, phase).unlink(missing_ok=True)

    def file(self, number: int, phase: str) -> Path:
        return self.directory / f"{number}.{phase}"


def transactions(env: StreamExecutionEnvironment, directory: Path) -> Any:
    records = timed(env, "numbers", pairs())
    numbers = records.map(lambda pair: pair[1]).uid("plain")
    numbers.add_sink(FileTransactions(directory / "transactions")).uid("transactions")
    numbers.sink_to(ListSink(directory / "list")).uid("list")
    return numbers


def make_stores(directory: Path) -> None:
    for name in ("transactions", "list"):
        (directory / name).mkdir(parents=True)


def committed(directory: Path) -> list[Any]:
    stored = [
        ("transactions", json.loads(line))
        for file in sorted((directory / "transactions").glob("*.committed"))
        for line in file.read_text().splitlines()
    ]
    return stored + [("list", value) for value in ListSink(directory / "list").values()]


# Loops


def iteration(env: StreamExecutionEnvironment, directory: Path) -> Any:
    records = env.from_collection([(number % KEYS, number) for number in range(1, 30)]).uid(
        "numbers"
    )
    loop = records.iterate(max_wait=1).set_parallelism(2).uid("loop")
    smaller = loop.key_by(lambda pair: pair[0]).map(lambda pair: (pair[0], pair[1] - 1))
    smaller = smaller.uid("smaller")
    loop.close_with(smaller.filter(lambda pair: pair[1] > 0).uid("positive"))
    return smaller.filter(lambda pair: pair[1] <= 0).uid("zero")


# Other sources


def sources(env: StreamExecutionEnvironment, directory: Path) -> Any:
    no_watermarks = WatermarkStrategy.no_watermarks()
    sequence = env.from_source(NumberSequenceSource(1, 90), no_watermarks, "sequence")
    generator = DataGeneratorSource(lambda index: f"record {index}", 90)
    generated = env.from_source(generator, no_watermarks, "generator")
    collection = env.from_collection([Reading("collected", number) for number in range(50)])
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(200))
    stamped = collection.assign_timestamps_and_watermarks(
        bounded.with_timestamp_assigner(ByValue())
    )
    windows = stamped.key_by(lambda reading: reading.value % 2).window(
        TumblingEventTimeWindows.of(Time.milliseconds(7))
    )
    return (
        sequence.uid("sequence"),
        generated.uid("generator"),
        collection.uid("collection"),
        windows.process(TellReadings()).uid("windows"),
    )


class ByValue(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value.value)


class TellReadings(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Iterator[Any]:
        yield key, context.window(), sorted(reading.value for reading in elements)


# Kafka

KAFKA_TOPIC = "snapshots"


def kafka_job(servers: str) -> SnapshotJob:
    """Reads the topic ``snapshots``, which has 30 numbers in each of two partitions."""

    def build(env: StreamExecutionEnvironment, directory: Path) -> Any:
        source = (
            KafkaSource.builder()
            .set_bootstrap_servers(servers)
            .set_topics(KAFKA_TOPIC)
            .set_starting_offsets(KafkaOffsetsInitializer.earliest())
            .set_bounded(KafkaOffsetsInitializer.latest())
            .set_value_only_deserializer(SimpleStringSchema())
            .build()
        )
        return env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka").uid("kafka")

    return SnapshotJob("kafka", build)


JOBS = (
    SnapshotJob("keyed-state", keyed_state, variants=tuple(VARIANTS)),
    SnapshotJob("operator-state", operator_state),
    SnapshotJob("windows", windows, variants=tuple(VARIANTS)),
    SnapshotJob("aggregations", aggregations),
    SnapshotJob("joins", joins),
    SnapshotJob("files", files, finished_lines, write_lines),
    SnapshotJob("transactions", transactions, committed, make_stores),
    SnapshotJob("iteration", iteration, variants=tuple(VARIANTS)),
    SnapshotJob("sources", sources),
)
