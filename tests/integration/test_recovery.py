"""Jobs that fail, lose processes, or are stopped and resumed process each record once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Encoder, JobStatus, Types
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.testing import Crash, Pause, ScriptedSource
from tests.integration.conftest import MakeEnvironment
from tests.integration.test_life_of_functions import BufferingSink
from tests.integration.test_life_of_functions import written as flushed_by_close
from tests.transactions import DirectoryStore, StoreSink
from tests.waiting import wait_until

KEYS = 5
# The process of a slot in real time, and the messenger of a slot host in micro-batches.
WORKER = "spark.worker_daemon"


class Numbering(KeyedProcessFunction):
    """(key, number) for each record, by state; with each tenth, a timer of processing time."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        if number % 10 == 0:
            timers = ctx.timer_service()
            # No two of a key at the same millisecond: they would be one timer.
            due = timers.current_processing_time() + 1500 + number
            timers.register_processing_time_timer(due)
        yield ctx.get_current_key(), number

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), "timer"


def numbered(records: Iterable[int], *, timers: bool) -> Counter[Any]:
    counts = Counter(value % KEYS for value in records)
    expected: Counter[Any] = Counter((key, n) for key in counts for n in range(1, counts[key] + 1))
    if timers:
        expected.update({(key, "timer"): counts[key] // 10 for key in counts})
    return expected


@pytest.fixture
def checkpointed(make_env: MakeEnvironment, tmp_path: Path) -> Any:
    """Environments whose jobs take checkpoints, and start over at once when they fail."""

    def make(parallelism: int = 2, **settings: str) -> StreamExecutionEnvironment:
        defaults = {
            "execution_checkpointing_interval": "200 ms",
            "execution_checkpointing_dir": str(tmp_path / "checkpoints"),
            "restart__strategy_type": "fixed-delay",
            "restart__strategy_fixed__delay_attempts": "10",
            "restart__strategy_fixed__delay_delay": "100 ms",
            "execution_buffer__timeout_interval": "5 ms",
        }
        return make_env(parallelism, **{**defaults, **settings})

    return make


def file_sink(directory: Path) -> FileSink:
    return (
        FileSink.for_row_format(str(directory), Encoder.simple_string_encoder())
        .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
        .with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        .build()
    )


def written(directory: Path) -> Counter[Any]:
    """The records in all files. In each file the counts of a key are in order."""
    found: Counter[Any] = Counter()
    for file in directory.rglob("part-*"):
        last: dict[Any, int] = {}
        for key, number in map(eval, file.read_text().splitlines() if file.is_file() else ()):
            found[key, number] += 1
            if number != "timer":
                assert number > last.get(key, 0)
                last[key] = number
    return found


def test_attempts_leave_no_files_in_the_directory_of_the_job(
    checkpointed: Any, tmp_path: Path
) -> None:
    work = tmp_path / "work"

    def seen(number: int) -> list[str]:
        return sorted(path.name for path in work.glob("firesteel-job-*/*") if number == 5)

    env = checkpointed(1, firesteel_working__dir=str(work))
    script = [1, Crash("first"), 2, Crash("second"), 3, Crash("third"), 4, 5]
    source = env.from_source(ScriptedSource(script), None, "script")
    *_, last = source.map(seen).execute_and_collect()
    programs = [name for name in last if name.startswith("program-")]
    assert len(programs) == 1
    assert [name for name in last if name.startswith("spark-")] == ["spark-3"]
    assert list(work.iterdir()) == []


def test_a_job_that_fails_starts_over_and_timers_files_and_collected_records_are_there_once(
    checkpointed: Any, tmp_path: Path
) -> None:
    """It fails twice: with timers pending, and with the last record."""
    env = checkpointed()
    script = [*range(200), *[Pause(0.4)] * 3, Crash("first"), *range(200, 300)]
    # Timers fire in the pauses, before the stream ends.
    script += [*[Pause(0.5)] * 8, 300, Crash("second"), 301]
    records = [item for item in script if isinstance(item, int)]
    source = env.from_source(ScriptedSource(script), None, "script").set_parallelism(1)
    numbers = source.key_by(lambda n: n % KEYS).process(Numbering())
    numbers.map(str).sink_to(file_sink(tmp_path / "out"))
    with numbers.execute_and_collect("fails twice") as results:
        collected = list(results)
    expected = numbered(records, timers=True)
    assert Counter(collected) == expected
    assert written(tmp_path / "out") == expected
    for key in range(KEYS):
        numbers_of_key = [n for k, n in collected if k == key and n != "timer"]
        assert numbers_of_key == sorted(numbers_of_key)
    assert not list((tmp_path / "checkpoints").rglob("_metadata"))


def paced(env: StreamExecutionEnvironment, records: int, per_second: int) -> Any:
    rate = RateLimiterStrategy.per_second(per_second)
    source = DataGeneratorSource(lambda index: index, records, rate)
    return env.from_source(source, None, "numbers").uid("numbers")


def count_to_files(env: StreamExecutionEnvironment, stream: Any, directory: Path) -> None:
    counted = stream.key_by(lambda n: n % KEYS).process(Numbering()).uid("numbering")
    records = counted.filter(lambda record: record[1] != "timer")
    records.map(str).sink_to(file_sink(directory)).uid("files")


def descendants(pid: int) -> Iterator[tuple[int, str]]:
    """Processes that this one has started, directly or not, with their command lines."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            waiting.append(child)
            try:
                yield child, Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
            except OSError:
                continue


def kill_one(kind: str, draw: random.Random) -> bool:
    """Kill a slot host, or a Python worker of Spark. The daemon that they come from stays."""
    found = [pid for pid, command in descendants(os.getpid()) if kind in command]
    if kind == WORKER:
        found = [pid for pid in found if _parent_is(pid, found)]
    if found:
        os.kill(draw.choice(found), signal.SIGKILL)
    return bool(found)


def _parent_is(pid: int, others: list[int]) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and int(stat.read_text().rpartition(")")[2].split()[1]) in others


def test_slot_hosts_and_python_workers_that_are_killed_change_nothing(
    checkpointed: Any, tmp_path: Path, execution: str
) -> None:
    draw = random.Random(7)
    env = checkpointed()
    all_killed = tmp_path / "all killed"

    def held(number: int) -> int:
        # On a busy machine the job would end before the last process is killed.
        while number == 2999 and not all_killed.exists():
            time.sleep(0.01)
        return number

    numbers = paced(env, 3000, 500).map(held).uid("held")
    count_to_files(env, numbers, tmp_path / "out")
    client = env.execute_async("killed processes")
    wait_until(lambda: written(tmp_path / "out"))
    hosts = WORKER if execution == "real-time" else "slothost.host"
    for kind in (hosts, WORKER, hosts):
        time.sleep(draw.uniform(0.2, 0.8))
        wait_until(partial(kill_one, kind, draw))
    all_killed.touch()
    client.get_job_execution_result().result()
    assert written(tmp_path / "out") == numbered(range(3000), timers=False)


@pytest.mark.execution("micro-batch")
def test_dataframes_start_over_with_the_job(checkpointed: Any, tmp_path: Path) -> None:
    """Spark's source is read from its beginning, and the sink gets again what it had: at least once."""
    env = checkpointed()
    spark = env.get_spark_session()
    trap, source, target = tmp_path / "trap", tmp_path / "in", tmp_path / "out"
    spark.range(20).coalesce(1).write.parquet(str(source))
    stream = spark.readStream.schema("id long").parquet(str(source))

    def fail_once(row: Any) -> Any:
        if row.id == 30 and not trap.exists():
            trap.touch()
            raise ValueError("once")
        return (row.id,)

    def write(frame: Any, epoch: int) -> None:
        frame.write.mode("append").parquet(str(target))

    def arrived() -> Counter[int]:
        if not target.exists():
            return Counter()
        return Counter(r["id"] for r in spark.read.schema("id long").parquet(str(target)).collect())

    ids = env.from_dataframe(stream).map(fail_once, Types.ROW_NAMED(["id"], [Types.LONG()]))
    ids.to_dataframe(write)
    client = env.execute_async("frames")
    wait_until(lambda: arrived() == Counter(range(20)))
    spark.range(20, 40).coalesce(1).write.mode("append").parquet(str(source))
    wait_until(lambda: set(arrived()) == set(range(40)))
    client.cancel().result()
    assert trap.exists()
    assert arrived() == Counter(range(40)) + Counter(range(20))


@pytest.mark.execution("micro-batch")
def test_lost_blocks_of_a_dataframe_do_not_abort_a_transaction_that_counts(
    checkpointed: Any, tmp_path: Path
) -> None:
    """Spark must not run slots again whose acks were read: the job goes back to its checkpoint."""
    env = checkpointed(1)
    spark = env.get_spark_session()
    store = tmp_path / "store"
    store.mkdir()
    lost: list[int] = []

    def write(frame: Any, epoch: int) -> None:
        if not lost and frame.count():
            for number, cached in spark.sparkContext._jsc.getPersistentRDDs().items():
                lost.append(number)
                cached.unpersist(True)
        frame.count()

    script = [1, 2, Pause(0.3), 3, 4, Pause(0.3), 5]
    numbers = env.from_source(ScriptedSource(script), None, "script")
    numbers.add_sink(StoreSink(store))
    numbers.map(lambda n: (n,), Types.ROW_NAMED(["n"], [Types.LONG()])).to_dataframe(write)
    env.execute("lost blocks")
    assert lost
    assert sorted(DirectoryStore(store).committed) == [1, 2, 3, 4, 5]


def has_more_than(count: int, directory: Path) -> bool:
    return written(directory).total() > count


def test_stop_with_a_savepoint_and_go_on_with_another_parallelism(
    checkpointed: Any, tmp_path: Path
) -> None:
    """Attributes that a function keeps in ``self`` until close() survive a stop as well."""
    savepoint = ""
    flushed: list[list[int]] = []
    for parallelism in (2, 3, 1):
        settings = {"execution_state__recovery_path": savepoint} if savepoint else {}
        env = checkpointed(parallelism, **settings)
        before = written(tmp_path / "out").total()
        per_second = 100 if parallelism > 1 else 5000
        numbers = paced(env, 1500, per_second)
        count_to_files(env, numbers, tmp_path / "out")
        kept = tmp_path / f"kept-{parallelism}"
        kept.mkdir()
        numbers.add_sink(BufferingSink(kept)).uid("keeper")
        client = env.execute_async("rescaled")
        if parallelism > 1:
            wait_until(partial(has_more_than, before, tmp_path / "out"))
            savepoint = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
        client.get_job_execution_result().result()
        assert client.get_job_status().result() is JobStatus.FINISHED
        flushed.append(flushed_by_close(kept))
    assert written(tmp_path / "out") == numbered(range(1500), timers=False)
    assert all(flushed)
    assert sorted(number for part in flushed for number in part) == list(range(1500))


@pytest.mark.execution("real-time")
def test_a_job_moves_between_the_ways_to_execute_by_savepoint_and_by_checkpoint(
    checkpointed: Any, tmp_path: Path
) -> None:
    retained = {
        "execution_checkpointing_externalized__checkpoint__retention": "RETAIN_ON_CANCELLATION"
    }
    path = ""
    for step, execution in enumerate(("real-time", "micro-batch", "real-time", "micro-batch")):
        settings = {"execution_state__recovery_path": path} if path else {}
        env = checkpointed(2, firesteel_execution=execution, **settings, **retained)
        before = written(tmp_path / "out").total()
        numbers = paced(env, 1500, 100 if step < 3 else 5000)
        count_to_files(env, numbers, tmp_path / "out")
        client = env.execute_async("moving")
        if step < 3:
            wait_until(partial(has_more_than, before, tmp_path / "out"))
        if step in (0, 1):
            # From real-time to micro-batch and back.
            path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
        elif step == 2:
            client.cancel().result()
            path = str(tmp_path / "checkpoints")
            continue
        client.get_job_execution_result().result()
    assert written(tmp_path / "out") == numbered(range(1500), timers=False)
