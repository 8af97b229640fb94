"""The job of the recovery tests, traps to set in it, and its expected results."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from firesteel.common import Configuration, Encoder, Types
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    RollingPolicy,
)
from firesteel.datastream.functions import (
    CheckpointedFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
)
from firesteel.datastream.state import ListStateDescriptor, ValueStateDescriptor
from firesteel.testing import Fault, JobHarness, ListSink, Pause, ScriptedSource, Timed
from tests.transactions import DirectoryStore, StoreSink

RECORDS = 48
KEYS = 5

RESTARTS = Configuration.from_dict(
    {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "20",
        "restart-strategy.fixed-delay.delay": "1 s",
    }
)


def seeds(quick: int, slow: int) -> list[Any]:
    """Seeds of random histories: a few of them always run, the others in ``make test-all``."""
    rest = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(quick, quick + slow)]
    return [*range(quick), *rest]


def cancel(harness: JobHarness) -> None:
    """Storage that is stuck continues when the job waits for it."""
    wait = harness._edge.wait

    def free(*arguments: Any) -> None:
        harness.storage_is_stuck = False
        wait(*arguments)

    harness.cancel()
    with patch.object(harness._edge, "wait", free):
        harness.run()


INTERRUPTIONS = ("job", "driver", "driver, and another parallelism")


def run_with_interruptions(program: Callable[[Any], None], ends: str, seed: int) -> None:
    """A job that ends again and again, as one of INTERRUPTIONS says, and loses tasks in between."""
    harness = JobHarness(
        program,
        parallelism=2,
        records_per_epoch=(4, 1, 7),
        checkpoint_every=3,
        configuration=RESTARTS,
        seed=seed,
    )
    for number, fault in enumerate((None, *Fault)):
        for _ in range(3):
            harness.run_epoch(None if fault is None else dict.fromkeys(harness.places(), fault))
        if harness.status.is_terminal_state():
            break
        if ends == "job":
            harness.crash()
        else:
            harness.kill()
            other = 1 + number % 3 if "another" in ends else 2
            harness = harness.resume(parallelism=other)
    harness.run()


class InjectedError(Exception):
    """The exception of a trap."""


@dataclass(frozen=True)
class Trap:
    """Raises the first ``times`` times that it is met, in whatever process: files remember."""

    directory: Path
    times: int = 1

    def meet(self) -> None:
        for number in range(self.times):
            try:
                (self.directory / f"trap-{number}").open("x").close()
            except FileExistsError:
                continue
            raise InjectedError(f"trap {number}")

    @property
    def met(self) -> int:
        return len(list(self.directory.glob("trap-*")))


Where = Callable[[str, Any], bool]
"""Whether a place (``map``, ``snapshot`` and so on) is trapped, for what is at hand there."""


@dataclass
class Job:
    """A source, a function that saves itself, keyed state with timers, and every kind of sink.

    Records of a key are numbered by state and come in order. ``trap`` is met ``where`` that says so.
    """

    directory: Path
    trap: Trap | None = None
    where: Where = lambda place, what: False
    rolling: RollingPolicy = field(default_factory=RollingPolicy.on_checkpoint_rolling_policy)

    def __post_init__(self) -> None:
        for name in ("list", "files", "transactions"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)

    def meet(self, place: str, what: Any = None) -> None:
        if self.trap is not None and self.where(place, what):
            self.trap.meet()

    def __call__(self, env: StreamExecutionEnvironment) -> Any:
        script: list[Any] = [Timed(number, number) for number in range(RECORDS)]
        # Processing-time timers fire in the pauses, an epoch each: a stream that ends drops those
        # that are pending.
        script[-4:-4] = [Pause(0.01)] * 60
        source = env.from_source(ScriptedSource(script, directory=self.directory), None, "script")
        source.set_parallelism(1).uid("script")
        pairs = source.flat_map(InPairs(self)).set_parallelism(1).uid("pairs")
        checked = pairs.map(Checked(self)).set_parallelism(1)
        counted = checked.key_by(lambda n: n % KEYS).process(Count(self)).uid("count")
        counted.sink_to(self.list_sink()).uid("list")
        counted.map(str).sink_to(self.file_sink()).uid("files")
        counted.map(list).add_sink(TrappedStoreSink(self)).uid("transactions")
        return counted

    def list_sink(self) -> ListSink:
        return ListSink(self.directory / "list")

    def file_sink(self) -> FileSink:
        return (
            FileSink.for_row_format(str(self.directory / "files"), Encoder.simple_string_encoder())
            .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            .with_rolling_policy(self.rolling)
            .build()
        )

    def outputs(self) -> dict[str, list[Any]]:
        """The records that each sink has made visible."""
        return {
            "list": self.list_sink().values(),
            "files": [eval(line) for line in _lines(self.directory / "files")],
            "transactions": [
                tuple(record)
                for record in DirectoryStore(self.directory / "transactions").committed
            ],
        }


class InPairs(FlatMapFunction, CheckpointedFunction):
    """Holds a record back in memory until the next one comes; only checkpoints save it."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def initialize_state(self, context: Any) -> None:
        self.job.meet("initialize", context.get_restored_checkpoint_id())
        store = context.get_operator_state_store()
        self.saved = store.get_list_state(ListStateDescriptor("held", Types.INT()))
        self.held = list(self.saved.get())

    def snapshot_state(self, context: Any) -> None:
        self.job.meet("snapshot", context.get_checkpoint_id())
        self.saved.update(self.held)

    def flat_map(self, value: int) -> Iterator[int]:
        self.held.append(value)
        if len(self.held) == 2:
            yield from self.held
            self.held = []


class Checked(MapFunction):
    def __init__(self, job: Job) -> None:
        self.job = job

    def open(self, runtime_context: Any) -> None:
        self.job.meet("open")

    def map(self, value: int) -> int:
        self.job.meet("map", value)
        return value

    def close(self) -> None:
        self.job.meet("close")


class Count(KeyedProcessFunction):
    """(key, number, value) for every record; every fourth one of a key sets timers."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def open(self, runtime_context: Any) -> None:
        self.job.meet("open before sinks")
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        if number % 4 == 0:
            timers = ctx.timer_service()
            timers.register_event_time_timer(1_000_000 + value)
            timers.register_processing_time_timer(timers.current_processing_time() + 20)
        yield (ctx.get_current_key(), number, value)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        self.job.meet("timer", timestamp)
        is_event_time = ctx.time_domain().name == "EVENT_TIME"
        if is_event_time:
            yield (ctx.get_current_key(), "event", timestamp)
        else:
            yield (ctx.get_current_key(), "processing", 0)


class TrappedStoreSink(StoreSink):
    def __init__(self, job: Job) -> None:
        super().__init__(job.directory / "transactions")
        self.job = job

    def pre_commit(self, transaction: str) -> None:
        self.job.meet("before pre-commit", transaction)
        super().pre_commit(transaction)
        self.job.meet("after pre-commit", transaction)

    def commit(self, transaction: str) -> None:
        self.job.meet("before commit", transaction)
        super().commit(transaction)
        self.job.meet("after commit", transaction)


def golden() -> list[Any]:
    """The job's results in plain Python. Processing-time timers count, but not their time."""
    records: list[Any] = []
    counts: Counter[int] = Counter()
    for value in range(RECORDS):
        key = value % KEYS
        counts[key] += 1
        records.append((key, counts[key], value))
        if counts[key] % 4 == 0:
            records.append((key, "processing", 0))
            records.append((key, "event", 1_000_000 + value))
    return records


def assert_exactly_once(
    job: Job,
    harness: JobHarness,
    *,
    collected: list[Any] | None = None,
    processes_killed: bool = False,
) -> None:
    """Every sink has what the clean run has, in order by key, and so has the state."""
    expected = golden()
    outputs = job.outputs()
    outputs["collected"] = harness.collected if collected is None else collected
    for sink, records in outputs.items():
        lost, extra = Counter(expected) - Counter(records), Counter(records) - Counter(expected)
        assert not lost, f"{sink} lacks {lost}"
        assert not extra, f"{sink} has too many of {extra}"
    for sink in ("list", "collected", "transactions"):
        assert _numbers(outputs[sink]) == _numbers(expected), f"{sink} is out of order"
    if not processes_killed:
        # What came of no checkpoint was aborted. Only who was killed may leave something behind.
        left = DirectoryStore(job.directory / "transactions").in_phase("prepared")
        assert not left, f"transactions are left behind: {left}"
    counts = {key: len(range(key, RECORDS, KEYS)) for key in range(KEYS)}
    assert harness.keyed_state() == {"count": {"count": counts}}, harness.keyed_state()


def _numbers(records: Iterable[Any]) -> dict[int, list[int]]:
    """The numbers of each key in the order in which they came out."""
    by_key: dict[int, list[int]] = defaultdict(list)
    for key, number, _ in records:
        if isinstance(number, int):
            by_key[key].append(number)
    return dict(by_key)


def _lines(directory: Path) -> Iterator[str]:
    for file in directory.rglob("*"):
        if file.is_file() and not file.name.startswith("."):
            yield from file.read_text().splitlines()
