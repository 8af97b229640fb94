"""Slot hosts as real processes with real sockets, without Spark."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from firesteel.common import JobStatus
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.functions import MapFunction
from firesteel.master.job_status import JobState
from firesteel.master.rate_control import RateControl
from firesteel.protocol.messages import SlotControl, decode
from firesteel.protocol.program import JobProgram, PackedProgram
from firesteel.protocol.rows import (
    ACK,
    ARROW_SCHEMA,
    FAILURE,
    OUTPUT,
    BufferRow,
    rows_of,
    to_record_batch,
)
from firesteel.slothost import client as slot_client
from firesteel.slothost.client import HostIsGoneError, HostSettings, run_in_host
from firesteel.slothost.connection import BrokenHostError, Opening, Peer
from firesteel.slothost.directory import SlotDirectory
from firesteel.slothost.host import TOKEN_VARIABLE
from firesteel.task.slot import control_row
from firesteel.testing import ScriptedSource
from firesteel.usercode import pickling
from firesteel.usercode.loading import UnloadableFunctionError
from tests.job_masters import started_master
from tests.waiting import wait_until

_PATIENCE = 30.0


class WhoAmI(MapFunction):
    """Counts in self; tells process and count."""

    def open(self, runtime_context: Any) -> None:
        self.count = 0

    def map(self, value: Any) -> Any:
        self.count += 1
        return (value, os.getpid(), self.count)


class Job:
    """script (-> map) -> key_by -> map -> print, in two levels of one slot."""

    def __init__(self, script: list[Any], function: Any = None, first: Any = None) -> None:
        env = StreamExecutionEnvironment().set_parallelism(1)
        stream = env.from_source(ScriptedSource(script), None, "script")
        if first is not None:
            stream = stream.map(first)
        keyed = stream.key_by(lambda v: 0)
        self.reduced = keyed.reduce(lambda a, b: a + b)
        self.reduced.map(function or WhoAmI()).print()
        levels = env._compile("job").levels
        assert levels.slots == (1, 1)
        job_id = uuid.uuid4().hex
        program = JobProgram(job_id, "job", 0, levels)
        self.packed = PackedProgram.pack(program)
        self.loads = 0
        self.state = JobState()
        self.master = started_master(program, RateControl(1.0, max_records=1), self.state)

    def load(self) -> PackedProgram:
        self.loads += 1
        return self.packed

    def plan(self) -> list[SlotControl]:
        self.master.delay(0.0)
        return list(self.master.plan_epoch(0.0).controls)

    def run_level(
        self, hosts: HostSettings, control: SlotControl, rows: list[BufferRow] | None
    ) -> list[BufferRow]:
        batches = None if rows is None else [to_record_batch(rows)]
        own = control if rows is None else None
        answer = run_in_host(hosts, control.address, self.load, batches, own)
        return [row for batch in answer for row in rows_of(batch)]

    def epoch(self, hosts: HostSettings, later: HostSettings | None = None) -> list[Any]:
        """Run an epoch; ``later`` are the hosts of the machine that runs the task of level 1."""
        controls = self.plan()
        rows = self.run_level(hosts, controls[0], None)
        rows = self.run_level(later or hosts, controls[1], [control_row(controls[1]), *rows])
        acks = [decode(row.payload) for row in rows if row.kind == ACK]
        failures = [decode(row.payload) for row in rows if row.kind == FAILURE]
        self.master.epoch_ended(acks, failures, 0.0)
        return [
            eval(line) for row in rows if row.kind == OUTPUT for line in pickling.loads(row.payload)
        ]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The hosts that were started; those left at the end are ended here."""
    processes: list[subprocess.Popen[bytes]] = []
    start = slot_client._start

    def remember(*arguments: Any) -> subprocess.Popen[bytes]:
        processes.append(start(*arguments))
        return processes[-1]

    monkeypatch.setattr(slot_client, "_start", remember)
    return processes


@pytest.fixture
def hosts(started: list[subprocess.Popen[bytes]]) -> Iterator[HostSettings]:
    settings = HostSettings(f"test-{uuid.uuid4().hex[:12]}", token="secret", idle_timeout=60.0)
    yield settings
    for process in started:
        process.kill()
        process.wait()
    shutil.rmtree(settings.directory, ignore_errors=True)


@pytest.fixture
def machines(hosts: HostSettings) -> Iterator[tuple[HostSettings, HostSettings]]:
    """Two machines of a cluster: their sockets are in different directories."""
    directory = SlotDirectory("127.0.0.1", hosts.token)
    first = replace(hosts, slot_directory=directory.location)
    second = replace(first, application=f"{first.application}-2")
    yield first, second
    directory.close()
    shutil.rmtree(second.directory, ignore_errors=True)


def test_a_slot_lives_in_one_process_across_epochs(hosts, started):
    job = Job([1, 2, 3])
    results = [result for _ in range(3) for result in job.epoch(hosts)]
    (process,) = started
    assert results == [(1, process.pid, 1), (3, process.pid, 2), (6, process.pid, 3)]
    assert process.pid != os.getpid()


def test_the_program_is_sent_once(hosts, started):
    job = Job([1, 2, 3])
    for _ in range(3):
        job.epoch(hosts)
    assert job.loads == 1


def test_a_killed_host_is_replaced_and_the_state_comes_back(hosts, started):
    job = Job([1, 2, 3])
    job.epoch(hosts)
    started[0].kill()
    started[0].wait()
    assert job.epoch(hosts) == [(3, started[1].pid, 1)]
    assert job.loads == 2
    assert job.epoch(hosts) == [(6, started[1].pid, 2)]


def test_on_a_cluster_a_slot_stays_on_its_machine_wherever_its_task_runs(machines, started):
    here, there = machines
    job = Job([1, 2, 3, 4])
    results = [job.epoch(*tasks) for tasks in (machines, (there, here), (here, here), machines)]
    # Level 0 began here, level 1 there.
    assert len(started) == 2
    assert results == [[(total, started[1].pid, n)] for n, total in enumerate([1, 3, 6, 10], 1)]
    assert job.loads == 2


def test_on_a_cluster_a_lost_slot_moves_to_the_machine_of_its_task(machines, started):
    here, there = machines
    job = Job([1, 2, 3])
    job.epoch(here, there)
    started[1].kill()
    started[1].wait()
    assert job.epoch(here, here) == [(3, started[0].pid, 1)]
    assert job.epoch(there, there) == [(6, started[0].pid, 2)]
    assert len(started) == 2


def test_on_a_cluster_a_slot_is_closed_by_force_on_its_machine(machines, started):
    here, there = machines
    job = Job([1, 2])
    job.epoch(here, there)
    first, second = _close_by_force(job)
    rows = job.run_level(there, first, None)
    rows = job.run_level(here, second, [control_row(second), *rows])
    assert len([row for row in rows if row.kind == ACK]) == 2
    with pytest.raises(HostIsGoneError):
        # Nothing is started for a slot that nothing knows.
        slot_client._open(here, Opening(replace(second.address, attempt=7), None, False, 60.0))
    assert len(started) == 2


def test_the_socket_is_private(hosts, started):
    Job([1]).epoch(hosts)
    assert hosts.directory.stat().st_mode & 0o777 == 0o700
    (path,) = hosts.directory.glob("*.sock")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_directory_that_is_open_to_others_is_refused(hosts):
    hosts.directory.mkdir(mode=0o755)
    hosts.directory.chmod(0o755)
    with pytest.raises(Exception, match="open to others"):
        Job([1]).epoch(hosts)


def test_a_wrong_token_is_refused(hosts, started):
    job = Job([1, 2])
    job.epoch(hosts)
    with pytest.raises(BrokenHostError):
        Job([1]).epoch(replace(hosts, token="guess"))
    assert job.epoch(hosts)[0][0] == 3
    assert len(started) == 1


def test_a_task_that_goes_away_does_not_harm_the_next_attempt(hosts, started):
    job = Job([1, 2, 3])
    job.epoch(hosts)
    controls = job.plan()
    rows = job.run_level(hosts, controls[0], None)
    peer = Peer(slot_client._connect(hosts, 0))
    peer.answer_challenge(hosts.token)
    peer.send(Opening(controls[1].address, None, has_input=True, idle_timeout=60.0))
    assert peer.receive() is False
    stream = pa.ipc.new_stream(pa.PythonFile(peer._writer, "w"), ARROW_SCHEMA)
    stream.write_batch(to_record_batch([control_row(controls[1]), *rows[:3]]))
    peer._writer.flush()
    peer.break_off()
    again = job.run_level(hosts, controls[1], [control_row(controls[1]), *rows])
    assert [kind for _, _, _, _, kind, _ in again].count(ACK) == 2
    printed = [pickling.loads(row.payload) for row in again if row.kind == OUTPUT]
    # The reduction is right; the counter in self has seen what the attempt saw.
    assert [eval(line)[0] for lines in printed for line in lines] == [3]


def test_input_that_fails_fails_the_task_with_its_own_error(hosts, started):
    job = Job([1, 2, 3])
    job.epoch(hosts)
    controls = job.plan()
    rows = job.run_level(hosts, controls[0], None)

    def failing() -> Iterator[pa.RecordBatch]:
        yield to_record_batch([control_row(controls[1]), *rows[:2]])
        raise RuntimeError("the shuffle file is gone")

    with pytest.raises(RuntimeError, match="the shuffle file is gone"):
        list(run_in_host(hosts, controls[1].address, job.load, failing(), None))
    again = job.run_level(hosts, controls[1], [control_row(controls[1]), *rows])
    assert [row.kind for row in again].count(FAILURE) == 0


def test_a_host_that_dies_within_an_epoch_is_noticed(hosts, started):
    class Die(MapFunction):
        def map(self, value: Any) -> Any:
            os._exit(9)

    job = Job([1], Die())
    with pytest.raises(BrokenHostError, match=r"the process of slot 0 died \(exit code 9\)"):
        job.epoch(hosts)


def _rebuild(driver: int, how: str) -> Any:
    if os.getpid() == driver:
        return Unloadable(how)
    if how == "exit":
        sys.exit(3)
    raise LookupError("no license on this machine")


class Unloadable(MapFunction):
    """Leaves the driver, but cannot be rebuilt anywhere else."""

    def __init__(self, how: str = "raise") -> None:
        self.how = how

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (os.getpid(), self.how)

    def map(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize(("how", "cause"), [("raise", "LookupError"), ("exit", "SystemExit")])
def test_a_function_that_cannot_be_loaded_fails_the_job_with_a_reason_and_the_host_lives_on(
    hosts, started, how, cause
):
    job = Job([1, 2], Unloadable(how))
    assert job.epoch(hosts) == []
    assert job.master.status is JobStatus.FAILING
    error = job.master.failure
    assert isinstance(error, UnloadableFunctionError)
    assert (error.job, error.operator, error.cause) == ("job", "Map", cause)
    assert "the Unloadable object" in error.function
    text = str(error)
    assert text.startswith("Traceback")
    assert "in _rebuild" in text
    assert "firesteel/task" not in text
    # There is nothing to close, and that is no failure.
    control, later = job.plan()
    rows = job.run_level(hosts, control, None)
    assert [row.kind for row in rows] == [ACK]
    rows = job.run_level(hosts, later, [control_row(later), *rows])
    assert [row.kind for row in rows] == [ACK, ACK]
    assert Job([1]).epoch(hosts) == [(1, started[0].pid, 1)]
    assert len(started) == 1


@pytest.mark.parametrize("cut", [1, 100, -1, -5, -20])
def test_a_stream_that_breaks_off_anywhere_is_noticed(cut):
    ours, theirs = socket.socketpair()
    batch = to_record_batch([BufferRow(0, 0, 0, n, 2, b"x" * 50) for n in range(5)])
    recording = Peer(ours)
    recording.send_batches([batch, batch])
    ours.shutdown(socket.SHUT_WR)
    whole = theirs.makefile("rb").read()
    left, right = socket.socketpair()
    left.sendall(whole[:cut])
    left.close()
    with pytest.raises(BrokenHostError):
        list(Peer(right).receive_batches())


def test_a_whole_stream_comes_through():
    ours, theirs = socket.socketpair()
    batch = to_record_batch([BufferRow(0, 0, 0, n, 2, b"x" * 50) for n in range(5)])
    Peer(ours).send_batches([batch, batch])
    assert list(Peer(theirs).receive_batches()) == [batch, batch]


class Stuck(MapFunction):
    """Does not come back: from C, or from Python code."""

    def __init__(self, directory: Path, *, in_python: bool) -> None:
        self.directory = directory
        self.in_python = in_python

    def map(self, value: Any) -> Any:
        if value == 1:
            return value
        (self.directory / "stuck").touch()
        while self.in_python:
            time.sleep(0.01)
        return time.sleep(600)

    def close(self) -> None:
        (self.directory / "closed").touch()


class Neighbor(MapFunction):
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def map(self, value: Any) -> Any:
        return value

    def close(self) -> None:
        (self.directory / "neighbor closed").touch()


def _get_stuck(job: Job, hosts: HostSettings, directory: Path) -> None:
    """One epoch whose Spark task is killed while the function of level 1 is stuck."""
    job.epoch(hosts)
    controls = job.plan()
    rows = job.run_level(hosts, controls[0], None)
    peer = Peer(slot_client._connect(hosts, 0))
    peer.answer_challenge(hosts.token)
    peer.send(Opening(controls[1].address, None, has_input=True, idle_timeout=60.0))
    peer.receive()
    peer.send_batches([to_record_batch([control_row(controls[1]), *rows])])
    wait_until((directory / "stuck").exists)
    peer.break_off()


def _close_by_force(job: Job) -> list[SlotControl]:
    job.state.cancel()
    return list(job.master.plan_epoch(0.0).forced().controls)


def test_a_function_that_is_busy_is_interrupted_and_closed_by_force(hosts, started, tmp_path):
    job = Job([1, 2], Stuck(tmp_path, in_python=True))
    _get_stuck(job, hosts, tmp_path)
    control = _close_by_force(job)[1]
    rows = job.run_level(hosts, control, [control_row(control)])
    assert [row.kind for row in rows] == [ACK]
    assert (tmp_path / "closed").exists()
    assert started[0].poll() is None


def test_a_function_that_blocks_ends_with_its_host_and_the_others_there_are_closed(
    hosts, started, tmp_path
):
    job = Job([1, 2], Stuck(tmp_path, in_python=False), Neighbor(tmp_path))
    _get_stuck(job, hosts, tmp_path)
    first, second = _close_by_force(job)
    with pytest.raises(HostIsGoneError):
        job.run_level(hosts, second, [control_row(second)])
    assert started[0].wait(_PATIENCE) == 1
    assert (tmp_path / "neighbor closed").exists()
    assert not (tmp_path / "closed").exists()
    with pytest.raises(HostIsGoneError):
        job.run_level(hosts, first, None)
    assert len(started) == 1


def test_a_job_that_closes_leaves_an_idle_host_that_ends_after_the_time_of_the_last_job(
    started, hosts
):
    impatient = replace(hosts, idle_timeout=0.5)
    for settings, job in ((hosts, Job([1])), (impatient, Job([1]))):
        while not job.master.status.is_terminal_state():
            job.epoch(settings)
    (process,) = started
    assert process.wait(_PATIENCE) == 0
    assert not hosts.directory.exists()


def test_a_host_with_slots_is_not_idle(started, hosts):
    impatient = replace(hosts, idle_timeout=0.1)
    job = Job([1, 2])
    job.epoch(impatient)
    with pytest.raises(subprocess.TimeoutExpired):
        started[0].wait(1.5)
    assert job.epoch(impatient)[0][2] == 2


def _start_host(path: Path, owner: int, idle: float = 60.0) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "firesteel.slothost.host", str(path), str(owner), str(idle)],
        env={
            **os.environ,
            TOKEN_VARIABLE: "secret",
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        },
    )


def test_a_host_ends_when_its_owner_is_gone(tmp_path):
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    path = tmp_path / "hosts" / "slot-0.sock"
    path.parent.mkdir()
    host = _start_host(path, owner.pid)
    try:
        wait_until(path.exists)
        assert host.poll() is None
        owner.kill()
        owner.wait()
        assert host.wait(_PATIENCE) == 0
        assert not path.parent.exists()
    finally:
        host.kill()
        owner.kill()


def test_a_host_takes_the_place_of_one_that_was_killed_as_it_started(hosts, started):
    hosts.directory.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(hosts.directory / "slot-0.new"))
    assert len(Job([1]).epoch(hosts)) == 1
    assert [path.name for path in hosts.directory.glob("*.new")] == []


def test_a_host_ends_on_sigterm_and_cleans_up(tmp_path):
    path = tmp_path / "hosts" / "slot-0.sock"
    path.parent.mkdir()
    host = _start_host(path, os.getpid())
    try:
        wait_until(path.exists)
        host.terminate()
        assert host.wait(_PATIENCE) == 0
        assert not path.exists()
    finally:
        host.kill()
