"""Leaders that are frozen or killed at random moments, as real processes with real transactions.

The processes are light: the job runs in the harness, without Spark. The election, the entries, the
checkpoints and the transactions of the sink are the real ones.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest

from firesteel.leader.settings import LeaderSettings, settings_to_json
from tests.leader.groups import file_settings, s3_settings, zookeeper_settings
from tests.recovery import master_process
from tests.servers.proxy import Proxy
from tests.servers.zookeeper import running_ensemble
from tests.waiting import wait_until

RECORDS = 1200
# Enough for a failure of twenty seconds.
LONG = 8000
LEASE_SECONDS = 0.4
# A renewal is two requests to a server.
S3_LEASE_SECONDS = 2.0


class MasterProcess:
    def __init__(
        self,
        settings: LeaderSettings,
        directory: Path,
        seed: int,
        *faults: str,
        records: int = RECORDS,
        command: tuple[str, ...] = (sys.executable,),
    ) -> None:
        self.events: list[list[str]] = []
        self.log = directory / f"master-{seed}.log"
        self._process = subprocess.Popen(
            [
                *command,
                "-m",
                master_process.__name__,
                json.dumps(settings_to_json(settings, 0)),
                str(directory),
                str(records),
                str(seed),
                *faults,
            ],
            stdout=subprocess.PIPE,
            stderr=self.log.open("wb"),
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.events.append(line.split())

    @property
    def pid(self) -> int:
        return self._process.pid

    def stands(self) -> bool:
        """Return True if this master is a candidate."""
        return any(event[0] == "standing" for event in list(self.events))

    def terms(self) -> list[int]:
        return [int(event[1]) for event in list(self.events) if event[0] == "granted"]

    def leads(self) -> bool:
        for event in reversed(list(self.events)):
            if event[0] in ("granted", "revoked", "lost", "finished"):
                return event[0] == "granted"
        return False

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def was_hit(self) -> bool:
        return any(event[0] == "hit" for event in list(self.events))

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()


def run_masters(settings: LeaderSettings, directory: Path, seed: int, count: int = 2) -> int:
    """Run a job on some masters, freeze or kill those that lead, and return the number of terms.

    The first one is frozen for longer than its lease. Some standbys are frozen while they take over.
    """
    lease = settings.session_timeout if settings.type == "zookeeper" else settings.lease_duration
    random = Random(seed)
    (directory / "sink").mkdir(parents=True)
    masters = [MasterProcess(settings, directory, 1000 * seed + n) for n in range(count)]
    started = list(masters)
    disturbances = random.randint(1, 3)
    try:
        for number in range(disturbances):
            wait_until(lambda: any(one.leads() for one in masters) or _is_over(masters))
            if _is_over(masters):
                break
            time.sleep(random.uniform(0.0, 0.8))
            leader = next((one for one in masters if one.leads()), None)
            if leader is None:
                continue
            if number > 0 and random.random() < 0.25:
                leader.kill()
                masters.remove(leader)
                masters.append(MasterProcess(settings, directory, 1000 * seed + len(started)))
                started.append(masters[-1])
                continue
            leader.freeze()
            others = [one for one in masters if one is not leader]
            known = {term for one in started for term in one.terms()}
            if random.random() < 0.4:
                # At any moment of the takeover, perhaps until a third master has taken over.
                time.sleep(random.uniform(0.8, 1.2) * lease)
                standby = random.choice(others)
                standby.freeze()
                time.sleep(random.uniform(0.0, 1.5) * lease)
                standby.wake()
            if number == 0 or random.random() < 0.8:
                # Longer than its lease: a standby takes over before it wakes up.
                wait_until(partial(_has_new_term, others, known))
                time.sleep(random.uniform(0.0, 0.3))
            else:
                time.sleep(random.uniform(0.0, 2 * LEASE_SECONDS))
            leader.wake()
        wait_until(lambda: _is_over(masters))
        check(directory, started)
        terms = max(term for one in started for term in one.terms())
        print(f"seed {seed}: {disturbances} disturbances, {terms} terms")
        return terms
    finally:
        for one in started:
            if not one.has_ended:
                one.kill()


def _has_new_term(masters: list[MasterProcess], known: set[int]) -> bool:
    return any(set(one.terms()) - known for one in masters) or _is_over(masters)


def _is_over(masters: list[MasterProcess]) -> bool:
    finished = any(event[0] == "finished" for one in masters for event in list(one.events))
    broken = [one for one in masters if one.exit_code not in (None, 0)]
    assert not broken, f"a master ended with {broken[0].exit_code}: {broken[0].log.read_text()}"
    return finished


def check(directory: Path, masters: list[MasterProcess], records: int = RECORDS) -> None:
    """Nothing is lost, nothing is doubled, and an old leader committed nothing new."""
    store = master_process.UniqueTransactions(directory / "sink")
    assert sorted(store.committed) == list(range(1, records + 1))
    terms = [term for one in masters for term in one.terms()]
    assert len(terms) == len(set(terms)), "two masters had the same term"
    granted = {
        (one.pid, int(event[1])): float(event[-1])
        for one in masters
        for event in one.events
        if event[0] == "granted"
    }
    commits, changed = [], []
    for line in (directory / "sink" / "commits.log").read_text().splitlines():
        pid, name, was_committed, at = json.loads(line)
        own = max(term for (owner, term), since in granted.items() if owner == pid and since <= at)
        commits.append((own, name, at))
        if not was_committed:
            changed.append(name)
    assert len(changed) == len(set(changed)), "a transaction was committed twice"
    late: dict[int, list[str]] = {}
    for own, name, at in commits:
        if any(term > own and since < at for (_, term), since in granted.items()):
            late.setdefault(own, []).append(name)
    for own, names in late.items():
        # A process may be frozen after its look at the fence, in the middle of one commit. It is
        # that of a complete checkpoint, so the next master makes it too, and one has no effect.
        assert len(names) == 1, f"{names} were committed in term {own} after it had ended"
        assert any(term > own and name == names[0] for term, name, _ in commits)


def test_a_frozen_or_killed_leader_loses_and_doubles_nothing(tmp_path):
    run_masters(file_settings(tmp_path, LEASE_SECONDS), tmp_path, seed=1)


def run_with_fault(settings: LeaderSettings, directory: Path, fault: str) -> None:
    """Hit the leader at a point of a checkpoint. A frozen one wakes up when the next has begun."""
    (directory / "sink").mkdir(parents=True)
    first = MasterProcess(settings, directory, 1, fault)
    masters = [first]
    try:
        wait_until(lambda: first.was_hit() or first.has_ended)
        assert first.was_hit(), first.log.read_text()
        second = MasterProcess(settings, directory, 2)
        masters.append(second)
        wait_until(lambda: second.terms() or second.has_ended)
        if fault.startswith("SIGSTOP"):
            os.kill(first.pid, signal.SIGCONT)
        wait_until(lambda: _is_over([second]))
        check(directory, masters)
    finally:
        for one in masters:
            if not one.has_ended:
                one.kill()


def test_a_leader_that_is_frozen_before_its_pointer_is_written_completes_no_checkpoint(tmp_path):
    run_with_fault(file_settings(tmp_path, LEASE_SECONDS), tmp_path, "SIGSTOP:metadata")


@pytest.mark.slow
@pytest.mark.parametrize("number", ["SIGSTOP", "SIGKILL"])
@pytest.mark.parametrize("point", master_process.POINTS)
def test_a_leader_that_is_hit_at_a_point_of_a_checkpoint(tmp_path, point, number):
    run_with_fault(file_settings(tmp_path, LEASE_SECONDS), tmp_path, f"{number}:{point}")


@pytest.mark.slow
@pytest.mark.parametrize("number", ["SIGSTOP", "SIGKILL"])
@pytest.mark.parametrize("point", master_process.POINTS)
def test_a_leader_in_zookeeper_that_is_hit_at_a_point(tmp_path, ensemble, point, number):
    settings = zookeeper_settings(ensemble.quorum, tmp_path, session=1.5)
    run_with_fault(settings, tmp_path, f"{number}:{point}")


@pytest.mark.slow
@pytest.mark.parametrize("number", ["SIGSTOP", "SIGKILL"])
@pytest.mark.parametrize("point", master_process.POINTS)
def test_a_leader_in_s3_that_is_hit_at_a_point(tmp_path, s3, point, number):
    run_with_fault(s3_settings(s3, S3_LEASE_SECONDS), tmp_path, f"{number}:{point}")


def commits(directory: Path) -> int:
    """Return the number of transactions that a commit has changed. A repeated one changes none."""
    path = directory / "sink" / "commits.log"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    # The last line may be unfinished.
    found = [json.loads(line) for line in lines if line.endswith("\n")]
    return sum(not was_committed for _, _, was_committed, _ in found)


@contextmanager
def long_job(directory: Path, *settings: LeaderSettings) -> Iterator[list[MasterProcess]]:
    """Start masters one after the other, and check the result of their job at the end."""
    (directory / "sink").mkdir(parents=True)
    masters: list[MasterProcess] = []
    try:
        for number, own in enumerate(settings):
            masters.append(MasterProcess(own, directory, number, records=LONG))
            # The first one has written something before the next one starts.
            wait_until(masters[-1].stands)
            wait_until(lambda: commits(directory) > 2 or _is_over(masters))
        assert not _is_over(masters), "the job was over too early"
        yield masters
        wait_until(lambda: _is_over(masters))
        check(directory, masters, LONG)
    finally:
        for one in masters:
            if not one.has_ended:
                one.kill()


@pytest.mark.slow
def test_a_leader_whose_network_to_zookeeper_is_cut(tmp_path, ensemble):
    settings = zookeeper_settings(ensemble.quorum, tmp_path, session=1.5)
    proxies = [Proxy(port) for port in ensemble.ports]
    through = ",".join(f"127.0.0.1:{proxy.port}" for proxy in proxies)
    try:
        with long_job(tmp_path, replace(settings, quorum=through), settings) as (cut_off, other):
            for proxy in proxies:
                proxy.cut()
            wait_until(other.terms)
            wait_until(lambda: not cut_off.leads())
            for proxy in proxies:
                proxy.mend()
            wait_until(lambda: _is_over([cut_off, other]))
            assert max(other.terms()) > max(cut_off.terms()[:1])
    finally:
        for proxy in proxies:
            proxy.close()


@pytest.mark.slow
def test_a_job_waits_while_zookeeper_has_no_quorum_for_twenty_seconds(tmp_path):
    with running_ensemble(tmp_path / "zookeeper") as ensemble:
        settings = zookeeper_settings(ensemble.quorum, tmp_path, session=1.5)
        with long_job(tmp_path, settings, settings) as masters:
            for number in (0, 1):
                ensemble.kill(number)
            away_since = time.monotonic()
            wait_until(lambda: not any(one.leads() for one in masters))
            before = commits(tmp_path)
            terms = [term for one in masters for term in one.terms()]
            wait_until(lambda: time.monotonic() - away_since >= 20)
            assert commits(tmp_path) == before
            assert [term for one in masters for term in one.terms()] == terms
            for number in (0, 1):
                ensemble.start(number)


@pytest.mark.slow
def test_a_job_continues_when_a_server_of_zookeeper_dies(tmp_path):
    with running_ensemble(tmp_path / "zookeeper") as ensemble:
        settings = zookeeper_settings(ensemble.quorum, tmp_path, session=1.5)
        with long_job(tmp_path, settings, settings):
            ensemble.kill(0)


def set_mode(directory: Path, mode: int) -> None:
    """Change the mode of a directory and of those below it, which masters may rename meanwhile."""
    directory.chmod(mode)
    for path in directory.rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_dir():
                path.chmod(mode)


# Modes do not bind root, unless a program gives up that right (CAP_DAC_OVERRIDE) for itself.
OBEYING_MODES = """
import ctypes, os, sys
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
if os.geteuid() == 0 and ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE):
    raise OSError(ctypes.get_errno(), "prctl")
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@pytest.mark.slow
def test_a_job_waits_while_the_storage_is_read_only(tmp_path):
    settings = file_settings(tmp_path, 1.0)
    group = Path(settings.directory)
    (tmp_path / "sink").mkdir()
    command = (sys.executable, "-c", OBEYING_MODES)
    masters = [
        MasterProcess(settings, tmp_path, number, records=LONG, command=command)
        for number in range(2)
    ]
    try:
        wait_until(lambda: all(one.stands() for one in masters))
        wait_until(lambda: commits(tmp_path) > 2 or _is_over(masters))
        assert not _is_over(masters), "the job was over too early"
        terms = {term for one in masters for term in one.terms()}
        set_mode(group, 0o555)
        wait_until(lambda: not any(one.leads() for one in masters))
        before = commits(tmp_path)
        waited_until = time.monotonic() + 3 * settings.lease_duration
        wait_until(lambda: time.monotonic() > waited_until)
        assert commits(tmp_path) == before
        assert {term for one in masters for term in one.terms()} == terms
        set_mode(group, 0o755)
        wait_until(lambda: _is_over(masters))
        check(tmp_path, masters, LONG)
    finally:
        set_mode(group, 0o755)
        for one in masters:
            if not one.has_ended:
                one.kill()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_many_leases(tmp_path, seed):
    run_masters(
        file_settings(tmp_path, LEASE_SECONDS), tmp_path, seed=100 + seed, count=2 + seed % 2
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(50))
def test_many_sessions_of_zookeeper(tmp_path, ensemble, seed):
    settings = zookeeper_settings(ensemble.quorum, tmp_path, session=1.5)
    run_masters(settings, tmp_path, seed=200 + seed, count=2 + seed % 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_many_leases_in_s3(tmp_path, s3, seed):
    settings = s3_settings(s3, S3_LEASE_SECONDS)
    run_masters(settings, tmp_path, seed=300 + seed, count=2 + seed % 2)
