"""Latency of records while a checkpoint or savepoint of 1,000,000 keys is taken."""

import tempfile
import time
from pathlib import Path

from benchmarks.cases import BY_NAME
from benchmarks.latency import (
    LatencyCase,
    Timeline,
    arrivals_in,
    latencies,
    latest,
    percentile,
)
from benchmarks.measure import Arguments, Figures, report
from benchmarks.peers.firesteel_jobs import Firesteel, numbers
from benchmarks.sections.latency import LatencyJob, milliseconds, wait_until_passed
from benchmarks.sections.section import Section
from benchmarks.text import below
from firesteel.common.job_client import JobClient

_KEYS = 1_000_000
_RATE = 2_000
_STEP_NANOSECONDS = 1_000_000_000 // _RATE
_CASE = LatencyCase("checkpoint_latency", "", _RATE, (0.0, 0.0))
_INTERVAL = "2 s"
_LOAD_SECONDS = 180.0
# The highest ratio of the 99th percentiles.
_GOAL = 2.0

Spans = list[tuple[int, int]]


class KeyOf:
    """Spreads records over all keys. A negative number is the first record of its key."""

    def __init__(self, keys: int) -> None:
        self.keys = keys

    def __call__(self, value: int) -> int:
        if value < 0:
            return -1 - value
        return value // _STEP_NANOSECONDS * 7_919 % self.keys


def is_due(value: int) -> bool:
    return value > 0


def wait_for_keys(client: JobClient, keys: int) -> None:
    """Wait until the reduction has received a record of every key."""
    deadline = time.monotonic() + _LOAD_SECONDS
    while True:
        last = client.get_overview()["vertices"][-1]["subtasks"]
        if sum(int(subtask["records_in"]) for subtask in last) >= keys:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"loading {keys:,} keys took longer than {_LOAD_SECONDS:.0f} s")
        time.sleep(0.1)


def measure_one(peer: Firesteel, keys: int, scale: float, savepoint: Path | None) -> Figures:
    """Return the percentiles of all records, and of those that were due in a checkpoint."""
    job = LatencyJob(peer, _RATE, Timeline.of(_CASE, scale, 0).records)
    first = numbers(job.env, 0, keys).map(lambda number: -1 - number)
    results = first.union(job.stream).key_by(KeyOf(keys)).reduce(latest).filter(is_due)
    try:
        with job.running(results) as client:
            wait_for_keys(client, keys)
            timeline = Timeline.of(_CASE, scale, job.begin())
            spans: Spans = []
            if savepoint is not None:
                while time.time_ns() < timeline.counted:
                    time.sleep(0.1)
                began = time.time_ns()
                client.trigger_savepoint(str(savepoint)).result()
                spans.append((began, time.time_ns()))
            wait_until_passed(client, timeline.end)
            if savepoint is None:
                spans = checkpoint_spans(client)
            time.sleep(1.0)
        everything = latencies(job.arrivals, timeline)
        during = sorted(
            (arrived - due) / 1e6
            for due, arrived in arrivals_in(job.arrivals)
            if timeline.counted < due <= timeline.end
            and any(begin <= due <= end for begin, end in spans)
        )
    finally:
        job.close()
    chosen = during if spans else everything
    if not chosen:
        raise RuntimeError("no record was due during a checkpoint")
    return {
        "records": len(chosen),
        "snapshots": len(spans),
        "seconds": sum(end - begin for begin, end in spans) / 1e9 / max(1, len(spans)),
        "p50": percentile(chosen, len(chosen), 0.5),
        "p99": percentile(chosen, len(chosen), 0.99),
        "longest": chosen[-1],
    }


def checkpoint_spans(client: JobClient) -> Spans:
    return [
        (
            one["trigger_timestamp"] * 1_000_000,
            (one["trigger_timestamp"] + one["end_to_end_duration"]) * 1_000_000,
        )
        for one in client.get_checkpoints()["history"]
        if one["status"] == "COMPLETED"
    ]


def measure(arguments: Arguments) -> None:
    keys = arguments.records_of(BY_NAME["reduce_1m"], _KEYS)
    base: float | None = None
    for when in ("no checkpoint", "during checkpoints", "during a savepoint"):
        with tempfile.TemporaryDirectory() as directory:
            settings = {"execution.checkpointing.dir": directory}
            if when == "during checkpoints":
                settings["execution.checkpointing.interval"] = _INTERVAL
            savepoint = Path(directory, "savepoint") if when == "during a savepoint" else None
            peer = Firesteel(arguments.parallelism, settings)
            found = measure_one(peer, keys, arguments.scale, savepoint)
        base = found["p99"] if base is None else base
        ratio = found["p99"] / base if base else None
        report(section="checkpoint_latency", when=when, keys=keys, ratio=ratio, **found)


def row(figures: Figures) -> list[str]:
    ratio = figures["ratio"]
    return [
        figures["when"],
        milliseconds(figures["p50"], None),
        milliseconds(figures["p99"], None),
        milliseconds(figures["longest"], None),
        below(ratio, _GOAL, f"{ratio:.2f}x") if figures["snapshots"] else "",
        f"{figures['snapshots']} of {figures['seconds']:.1f} s" if figures["snapshots"] else "",
    ]


SECTION = Section(
    "checkpoint_latency",
    ("reduce, 1,000,000 keys, 2,000/s", "median", "99 %", "longest", "99 % / without", "taken"),
    row,
    measure,
)
