"""Sessions with real processes: jobs of clients, their results, savepoints, crashes and isolation."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firesteel.client.rest_client import RestClient
from tests.cli.conftest import Commands
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Write = Callable[..., Path]

# Counts its records by key, and appends a line per record to the file that it gets as argument.
COUNTING = """
import os, sys, time
from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.functions import KeyedProcessFunction
from firesteel.datastream.state import ValueStateDescriptor

path = sys.argv[1]

class Count(KeyedProcessFunction):
    def open(self, context):
        self.count = context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, context):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        with open(path, "a") as file:
            file.write(f"{os.getpid()} {context.get_current_key()} {count}\\n")
        yield count

env = StreamExecutionEnvironment.get_execution_environment()
source = DataGeneratorSource(lambda number: number, 10**9, RateLimiterStrategy.per_second(200))
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
counts = numbers.key_by(lambda number: number % 4).process(Count()).uid("count").name("count")
counts.filter(lambda count: False).uid("none").print().uid("print")
env.execute("counting")
"""


def lines_of(path: Path) -> list[tuple[int, int, int]]:
    """Return (process, key, count) of each record."""
    if not path.exists():
        return []
    whole = [line.split() for line in path.read_text().splitlines()]
    return [(int(a), int(b), int(c)) for a, b, c in (line for line in whole if len(line) == 3)]


def counts_of(path: Path) -> dict[int, int]:
    """Return the last count of each key."""
    return {key: count for _, key, count in lines_of(path)}


def test_a_program_runs_in_the_session_and_its_result_comes_back(
    session: Commands, write: Write
) -> None:
    program = write("""
import sys
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import MapFunction

class Seen(MapFunction):
    def open(self, context):
        self.seen = context.get_metrics_group().counter("seen")
    def map(self, value):
        self.seen.inc()
        return value * 2

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_collection(range(10)).map(Seen()).name("double")
print("collected", sorted(numbers.execute_and_collect("collecting")))
env.from_collection(range(int(sys.argv[1]))).map(Seen()).name("double").print()
client = env.execute_async("counted")
result = client.get_job_execution_result().result()
print("accumulators", result.get_all_accumulator_results(), client.get_job_status().result().name)

env.from_collection([1]).print()
env.execute("waited for")

env.from_collection([1, 0]).map(lambda number: 1 / number).name("invert").print()
env.execute("failing")
""")
    output = session("run", "-m", session.address, str(program), "3", code=1)
    assert f"collected {[number * 2 for number in range(10)]}" in output
    assert "accumulators {'double.seen': 3} FINISHED" in output
    ids = re.findall(r"^Job has been submitted with JobID ([0-9a-f]{32})$", output, re.MULTILINE)
    # As in Flink, the end of a job is reported if execute() waits for it.
    assert re.findall(r"^Job with JobID (\w+) has finished\.$", output, re.MULTILINE) == [ids[2]]
    states = {job_id: job["state"] for job_id, job in session.jobs().items()}
    assert [states[job_id] for job_id in ids] == ["FINISHED", "FINISHED", "FINISHED", "FAILED"]
    # The error of a function ends the client with exit code 1.
    assert "The program finished with the following exception:" in output
    assert "ZeroDivisionError" in output
    assert "operator 'invert'" in output

    # The lines of print() are the output of the job master, and not of the client.
    client = RestClient(f"http://{session.address}")
    printed, _ = client.get_bytes(f"/jobs/{ids[1]}/stdout")
    assert sorted(line.split()[-1] for line in printed.decode().splitlines()) == ["0", "2", "4"]
    files = [file["name"] for file in client.get("/jobmanager/logs")["logs"]]
    assert f"job-{ids[1]}.out" in files
    assert client.get_bytes(f"/jobmanager/logs/job-{ids[1]}.out")[0] == printed
    log, _ = client.get_bytes("/jobmanager/log")
    assert f"job {ids[1]} (counted) is FINISHED" in log.decode()
    listed = session("session", "list", "--token")
    assert f"http://{session.address} : process" in listed
    assert "0 jobs running, 12 of 12 slots free" in listed


def wait_for_counts(path: Path, least: int, other_than: int = 0) -> None:
    """Wait until each key has been counted so often, in processes other than one."""

    def reached() -> bool:
        counts: dict[int, int] = {}
        for process, key, _ in lines_of(path):
            if process != other_than:
                counts[key] = counts.get(key, 0) + 1
        return len(counts) == 4 and min(counts.values()) >= least

    wait_until(reached, lambda: f"only {counts_of(path)}")


def test_a_job_survives_its_client_a_crash_a_savepoint_and_a_rescale(
    session: Commands, write: Write, tmp_path: Path
) -> None:
    """The counts of all keys continue without a gap and without a repetition."""
    program, out = write(COUNTING), tmp_path / "counts"
    job_id = session.submit(
        program,
        "-p",
        "1",
        "-Dexecution.checkpointing.interval=500 ms",
        f"-Dexecution.checkpointing.dir={tmp_path / 'checkpoints'}",
        "-Drestart-strategy.type=fixed-delay",
        "-Drestart-strategy.fixed-delay.delay=1 ms",
        arguments=(str(out),),
    )
    wait_for_counts(out, 10)
    listed = session("list", "-m", session.address)
    assert "Running/Restarting Jobs" in listed
    assert f"{job_id} : counting (RUNNING)" in listed

    triggered = session("savepoint", job_id, "-m", session.address)
    assert f"Triggering savepoint for job {job_id}." in triggered
    path = re.search(r"^Savepoint completed. Path: (.*)$", triggered, re.MULTILINE)
    assert path is not None
    assert (Path(path[1]) / "_metadata").exists()
    assert "uid 'count'" in session("savepoint", "show", path[1])
    checkpoint = session("checkpoint", job_id, "-m", session.address)
    assert re.search(rf"^Checkpoint \d+ for job {job_id} completed\.$", checkpoint, re.MULTILINE)
    assert f"Savepoint '{path[1]}' disposed." in session("savepoint", "-d", path[1])
    assert not Path(path[1]).exists()

    # A crash: the process of the function dies as if the system had killed it.
    before = counts_of(out)
    worker = lines_of(out)[-1][0]
    os.kill(worker, signal.SIGKILL)
    wait_for_counts(out, 10, other_than=worker)
    first: dict[int, int] = {}
    for process, key, count in lines_of(out):
        if process != worker:
            first.setdefault(key, count)
    assert all(first[key] > 1 for key in before), "the state of a key was lost"
    # The job did not restart for it, so only its history tells of the loss.
    client = RestClient(f"http://{session.address}")

    def failures() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = client.get(f"/jobs/{job_id}/exceptions")["exceptionHistory"][
            "entries"
        ]
        return found

    wait_until(failures)
    [loss] = failures()
    assert loss["restarted"]
    assert "has lost a process, and continues from its last epoch" in loss["stacktrace"]

    # In place: the counts of all keys continue, and no record is counted twice.
    seen = len(lines_of(out))
    rescaled = session("rescale", "-p", "2", job_id, "-m", session.address)
    assert f"Rescaled job {job_id}." in rescaled
    wait_until(lambda: len(lines_of(out)) > seen + 100)
    parallelism = [vertex["parallelism"] for vertex in client.get(f"/jobs/{job_id}")["vertices"]]
    assert max(parallelism) == 2
    newest: dict[int, int] = {}
    for _, key, count in lines_of(out)[seen:]:
        assert count == newest.get(key, count - 1) + 1
        newest[key] = count
    shown = session("info", job_id, "-m", session.address)
    assert f"Job {job_id} : counting (RUNNING)" in shown
    assert "parallelism 2" in shown

    stopped = session("stop", "-m", session.address, "-p", str(tmp_path / "stopped"), job_id)
    assert f'Suspending job "{job_id}" with a CANONICAL savepoint.' in stopped
    savepoint = stopped.partition("Savepoint completed. Path: ")[2].strip()
    session.wait_for_state(job_id, "FINISHED")
    last = counts_of(out)

    again = tmp_path / "again"
    new_id = session.submit(program, "-s", savepoint, "-p", "2", arguments=(str(again),))
    wait_for_counts(again, 2)
    first = {}
    for _, key, count in lines_of(again):
        first.setdefault(key, count)
    assert first == {key: count + 1 for key, count in last.items()}
    details = RestClient(f"http://{session.address}").get(f"/jobs/{new_id}")
    assert max(vertex["parallelism"] for vertex in details["vertices"]) == 2
    canceled = session("cancel", new_id, "-m", session.address)
    assert f"Cancelling job {new_id}.\nCancelled job {new_id}." in canceled
    session.wait_for_state(new_id, "CANCELED")


VERSIONED = """
import sys
from firesteel.datastream import StreamExecutionEnvironment
import flavor

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_collection(range(40)).map(flavor.taste)
# In one piece: the end of the job is reported by a thread.
print(f"tasted {sorted(set(numbers.execute_and_collect('tasting')))}")
"""


def test_two_jobs_have_two_versions_of_one_module(
    session: Commands, write: Write, tmp_path: Path
) -> None:
    """Both run at the same time, and each also imports its own version late, in the task."""
    program = write(VERSIONED)
    running = []
    for version in ("salt", "sugar"):
        module = write(
            f"""
import time
VERSION = "{version}"
def taste(number):
    import flavor
    time.sleep(0.01)
    return flavor.VERSION + "/" + VERSION
""",
            f"{version}/flavor.py",
        )
        running.append(
            session.start("run", "-m", session.address, "-pyfs", str(module), str(program))
        )
    answers = [process.communicate(timeout=240) for process in running]
    for version, (output, errors) in zip(("salt", "sugar"), answers, strict=True):
        assert f"tasted ['{version}/{version}']" in output, errors


def test_code_is_taken_only_with_the_token(session: Commands, tmp_path: Path) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        request = urllib.request.Request(
            f"http://{session.address}/firesteel/jobs", b"PK", headers, method="POST"
        )
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(request)


def test_a_job_that_never_fits_is_refused_with_numbers(session: Commands, write: Write) -> None:
    program = write("""
from firesteel.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_sequence(1, 10).print()
env.execute()
""")
    output = session("run", "-m", session.address, "-p", "13", str(program), code=1)
    assert "The job needs 13 slots. The session has 12" in output


def test_the_plan_of_a_program_is_printed(commands: Commands, write: Write) -> None:
    output = commands("info", "-p", "3", str(write(COUNTING)), "/nowhere")
    plan = json.loads(
        output.partition("Execution Plan -----------------------")[2].rpartition("\n---")[0]
    )
    assert [node["parallelism"] for node in plan["nodes"]][:2] == [3, 3]
