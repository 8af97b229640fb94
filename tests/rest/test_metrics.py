"""Aggregated metrics: a hot key shows as skew, and salted keys cure it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.functions import KeyedProcessFunction
from firesteel.dispatcher.dispatcher import Dispatcher
from firesteel.master.running_jobs import RunningJob
from firesteel.rest.metric_values import metric_scope
from tests.rest.client import Client
from tests.rest.jobs import checkpointed, ended, start
from tests.waiting import wait_until

PARALLELISM = 4
PAIRS = Types.TUPLE([Types.STRING(), Types.INT()])


def orders(env: StreamExecutionEnvironment) -> DataStream:
    """95 of 100 orders are for tea."""
    env.set_parallelism(PARALLELISM)
    source = NumberSequenceSource(0, 10**9)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    return numbers.map(lambda number: ("tea" if number % 20 else f"cake {number % 7}", number))


def hot(env: StreamExecutionEnvironment) -> None:
    keyed = orders(env).key_by(lambda order: order[0])
    keyed.reduce(lambda a, b: (a[0], a[1] + b[1])).name("totals")


def salted(env: StreamExecutionEnvironment) -> None:
    keyed = orders(env).key_by(lambda order: (order[0], order[1] % 64))
    keyed.reduce(lambda a, b: (a[0], a[1] + b[1])).name("totals")


def skew_of(
    dispatcher: Dispatcher, client: Client, build: Callable[..., None], directory: Path
) -> float:
    job = start(dispatcher, build, build.__name__, **checkpointed(directory))
    with ended(job):
        wait_until(lambda: _records(client, job)["sum"] > 20_000)
        return float(_records(client, job)["skew"])


def _records(client: Client, job: RunningJob) -> dict[str, float]:
    [vertex] = [one.id for one in job.description().vertices if "totals" in one.name]
    path = f"/jobs/{job.job_id}/vertices/{vertex}/subtasks/metrics"
    found: list[dict[str, float]] = client.get(f"{path}?get=numRecordsIn").json()
    return found[0] if found else {"sum": 0}


def test_a_hot_key_is_seen_as_skew_and_salted_keys_remove_it(
    dispatcher: Dispatcher, client: Client, tmp_path: Path
) -> None:
    assert skew_of(dispatcher, client, hot, tmp_path / "hot") > 60
    assert skew_of(dispatcher, client, salted, tmp_path / "salted") < 25


def test_operators_have_the_records_that_enter_and_leave_them(
    client: Client, job: RunningJob
) -> None:
    """The chain of a vertex is "count <&> ship", or "Keyed Aggregation" with its print sink."""
    for vertex in job.description().vertices:
        path = f"/jobs/{job.job_id}/vertices/{vertex.id}/subtasks/0/metrics"
        names = [metric["id"] for metric in client.get(path).json()]
        found = {
            metric["id"]: metric["value"]
            for metric in client.get(f"{path}?get={','.join(names)}").json()
        }
        scopes = [metric_scope(operator.name) for operator in vertex.operators]
        first, last = scopes[0], scopes[-1]
        assert found[f"{first}.numRecordsIn"] == found["numRecordsIn"]
        assert found[f"{first}.currentInputWatermark"] == found["currentInputWatermark"]
        assert found[f"{last}.numRecordsOut"] == found["numRecordsOut"]
        for one, after in pairwise(scopes):
            assert found[f"{after}.numRecordsIn"] == found[f"{one}.numRecordsOut"]
        for scope in scopes:
            for name in ("numRecordsIn", "numRecordsOut"):
                assert f"{scope}.{name}PerSecond" in found
            assert f"{scope}.currentOutputWatermark" in found


class Reminder(KeyedProcessFunction):
    def process_element(self, value, ctx) -> None:
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)

    def on_timer(self, timestamp, ctx) -> None:
        """Only the metrics matter."""


def reminders(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda number, _: number
    )
    numbers = env.from_source(NumberSequenceSource(0, 10**9), strategy, "numbers")
    numbers.key_by(lambda number: number % 3).process(Reminder()).name("remind")


def test_timers_fire_at_a_rate(dispatcher: Dispatcher, client: Client, tmp_path: Path) -> None:
    job = start(dispatcher, reminders, "reminders", **checkpointed(tmp_path))
    with ended(job):
        vertex = next(one for one in job.description().vertices if "remind" in one.name)
        scope = metric_scope(vertex.operators[0].name)
        names = [f"{scope}.{name}" for name in ("numFiredTimers", "numFiredTimersPerSecond")]
        path = f"/jobs/{job.job_id}/vertices/{vertex.id}/subtasks/0/metrics?get={','.join(names)}"

        def both_are_positive() -> bool:
            found = client.get(path).json()
            return len(found) == 2 and all(float(one["value"]) > 0 for one in found)

        wait_until(both_are_positive)


def test_the_parts_of_each_second_add_up(
    dispatcher: Dispatcher, client: Client, tmp_path: Path
) -> None:
    job = start(dispatcher, hot, "parts", **checkpointed(tmp_path))
    names = [f"{part}TimeMsPerSecond" for part in ("busy", "idle", "backPressured")]
    waits = [f"{part}BackPressuredTimeMsPerSecond" for part in ("soft", "hard")]
    with ended(job):
        wait_until(lambda: _records(client, job)["sum"] > 1000)
        for vertex in job.description().vertices:
            for subtask in range(vertex.parallelism):
                path = f"/jobs/{job.job_id}/vertices/{vertex.id}/subtasks/{subtask}/metrics"
                found = client.get(f"{path}?get={','.join(names)}").json()
                assert sum(float(one["value"]) for one in found) == 1000
                # One reply: the job continues.
                found = client.get(f"{path}?get={','.join([*waits, names[2]])}").json()
                soft, hard, all_of_it = (float(one["value"]) for one in found)
                assert soft + hard == all_of_it
                pools = client.get(f"{path}?get=buffers.inPoolUsage,buffers.outPoolUsage").json()
                assert all(0.0 <= float(one["value"]) <= 1.0 for one in pools)
                assert len(pools) == 2
