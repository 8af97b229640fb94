"""The dispatcher of a session without Spark: submissions and their slots."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firesteel.checkpoint.storage.storage import StorageError
from firesteel.client.packing import pack_job
from firesteel.common.configuration import Configuration
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.dispatcher import session as sessions
from firesteel.dispatcher import session_job
from firesteel.dispatcher.job_handle import NoAnswerError
from firesteel.dispatcher.job_process import LEADER, write_leader_file
from firesteel.dispatcher.job_store import JobStore, StoredJob
from firesteel.dispatcher.session import SessionDispatcher
from firesteel.dispatcher.session_job import SessionJob
from firesteel.dispatcher.slot_pool import NoResourceAvailableError
from firesteel.errors import InvalidProgramError, JobExecutionError
from firesteel.leader.file_leases import LeaseDirectory
from firesteel.leader.settings import settings_from_json, settings_to_json
from firesteel.protocol.error_json import encode_error
from tests.leader.groups import file_settings
from tests.waiting import wait_until

Make = Callable[..., SessionDispatcher]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Make]:
    """Makes a session with four slots, whose jobs get slots but no process."""
    monkeypatch.setattr(sessions, "user_session", lambda *_: None)
    monkeypatch.setattr(SessionDispatcher, "_task_slots", lambda *_, **__: 4)
    monkeypatch.setattr(sessions, "stop_own_session", lambda: None)
    monkeypatch.setattr(SessionDispatcher, "_start", lambda *_: None)
    made: list[SessionDispatcher] = []

    def make_session(**settings: str) -> SessionDispatcher:
        configuration = {"firesteel.working-dir": str(tmp_path), **settings}
        made.append(SessionDispatcher(Configuration.from_dict(configuration)))
        return made[-1]

    yield make_session
    for session in made:
        session.close()


def packed(session: SessionDispatcher, parallelism: int = 1, job_id: JobID | None = None) -> Path:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    env.from_sequence(1, 10).map(lambda number: number).print()
    job = env._compile("packed")
    path = session.new_file()
    with path.open("wb") as file:
        pack_job(job_id or JobID.generate(), job.stream_graph, job.levels, job.settings, file)
    return path


def test_a_job_waits_for_slots_until_one_ends(make: Make) -> None:
    session = make()
    first = session.submit(packed(session, 4))
    second = session.submit(packed(session, 4))
    assert session.slots().by_job == {str(first.job_id): 4}
    assert session.slots().free == 0
    first.fail(InvalidProgramError("over"))
    assert session.slots().by_job == {str(second.job_id): 4}
    assert second.status() is JobStatus.CREATED


def test_a_session_can_refuse_jobs_instead(make: Make) -> None:
    session = make(**{"firesteel.session.when-full": "refuse"})
    session.submit(packed(session, 3))
    with pytest.raises(
        NoResourceAvailableError, match=r"needs 2 slots\. The session has 4, and 1 of them are free"
    ):
        session.submit(packed(session, 2))
    assert len(session.jobs()) == 1
    session.submit(packed(session, 1))


def test_a_job_does_not_wait_longer_than_the_timeout(make: Make) -> None:
    session = make()
    session.submit(packed(session, 4))
    # Only now, so that the first job gets its slots on a busy machine, too.
    session._timeout = 0.05
    waiting = session.submit(packed(session, 1))
    wait_until(lambda: waiting.status() is JobStatus.FAILED)
    assert "no more became free within" in str(waiting.result().exception())


def test_a_job_that_waits_is_canceled_at_once(make: Make) -> None:
    session = make()
    session.submit(packed(session, 4))
    waiting = session.submit(packed(session, 1))
    waiting.cancel().result(10)
    assert waiting.status() is JobStatus.CANCELED


def test_the_same_job_is_taken_once(make: Make) -> None:
    session, job_id = make(), JobID.generate()
    session.submit(packed(session, job_id=job_id))
    with pytest.raises(InvalidProgramError, match="has been submitted already"):
        session.submit(packed(session, job_id=job_id))


def test_a_session_that_ends_takes_no_jobs(make: Make, tmp_path: Path) -> None:
    session = make()
    job = session.submit(packed(session))
    path = packed(session).rename(tmp_path / "late.zip")
    session.close()
    assert job.status() is JobStatus.SUSPENDED
    with pytest.raises(InvalidProgramError, match="is being stopped"):
        session.submit(path)


def changed(path: Path, old: bytes, new: bytes) -> None:
    """Replace a part of the manifest of a submission."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    assert old in files["manifest.json"]
    files["manifest.json"] = files["manifest.json"].replace(old, new)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"python": "3.', b'"python": "2.', "runs Python 2."),
        (b'"firesteel": "', b'"firesteel": "99.', "has Firesteel 99."),
        (b'"job_id": "', b'"job_id": "../', "hexadecimal"),
        (b'"collected":', b'"collection":', "no valid manifest"),
    ],
)
def test_clients_that_do_not_fit(make: Make, old: bytes, new: bytes, message: str) -> None:
    session = make()
    path = packed(session)
    changed(path, old, new)
    with pytest.raises((InvalidProgramError, ValueError), match=message):
        session.submit(path)
    assert not path.exists()
    assert session.jobs() == []


def a_zip(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"x" * 10_000, a_zip("other", b""), a_zip("manifest.json", b"[]")],
    ids=["empty", "cut off", "no zip", "no manifest", "a list"],
)
def test_what_is_no_job_is_refused(make: Make, content: bytes) -> None:
    session = make()
    path = session.new_file()
    path.write_bytes(content)
    with pytest.raises(InvalidProgramError):
        session.submit(path)
    assert not path.exists()


def test_requests_within_a_moment_share_the_answer_of_the_job_master(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_job, "_FRESH_SECONDS", 600.0)
    session = make()
    job = session.submit(packed(session))
    asked: list[str] = []
    job._channel = Master(job, asked)  # type: ignore[assignment]
    for _ in range(5):
        assert job.restarts() == 3
    assert asked == ["restarts"]
    # A change makes the last answer too old.
    job.savepoint(None, None).result(10)
    assert job.restarts() == 3
    assert asked == ["restarts", "savepoint", "restarts"]
    job._channel = None


def test_a_job_master_that_hangs_while_it_starts_can_be_canceled(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only one that runs gets the time that functions of users may take to end."""
    monkeypatch.setattr(session_job, "_CANCEL_SECONDS", 0.01)
    session = make()
    canceled = []
    for has_started in (True, False):
        job = session.submit(packed(session))
        job._channel = Master(job, [], answers=False)  # type: ignore[assignment]
        if has_started:
            job._take({"event": "started"})
        canceled.append((job, job.cancel()))
    (running, ends_late), (starting, ends_soon) = canceled
    ends_soon.result(10)
    assert starting.status() is JobStatus.CANCELED
    assert not ends_late.done()
    running._end(JobStatus.CANCELED, None)
    running._channel = starting._channel = None


def test_a_job_master_that_hangs_is_waited_for_once(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_job, "_ANSWER_SECONDS", 0.05)
    session = make()
    job = session.submit(packed(session))
    asked: list[str] = []
    job._channel = Master(job, asked, answers=False)  # type: ignore[assignment]
    # The last known answer.
    assert [job.restarts() for _ in range(3)] == [0, 0, 0]
    assert asked == ["restarts"]
    # Other questions are asked, but their answers are not waited for.
    monkeypatch.setattr(session_job, "_ANSWER_SECONDS", 600.0)
    assert job.failures() == []
    assert asked == ["restarts", "failures"]
    job._channel = None


@pytest.fixture
def led(make: Make, tmp_path: Path) -> tuple[SessionDispatcher, JobStore]:
    """A session that leads a group of masters, and its store."""
    settings = file_settings(tmp_path)
    LeaseDirectory(Path(settings.directory)).create()
    session, store = make(), JobStore(settings, settings.open(), 0)
    session.stand_by()
    session.lead(store)
    return session, store


def start_without_zookeeper(job: SessionJob) -> None:
    """Start the process of a job whose entries are in a ZooKeeper that does not answer."""
    settings, term = settings_from_json(json.loads((job.directory / LEADER).read_text()))
    away = replace(settings, type="zookeeper", quorum="127.0.0.1:1", connection_timeout=0.1)
    write_leader_file(job.directory, settings_to_json(away, term))
    job.start(2, {}, "workers")


def test_a_job_whose_entries_cannot_be_read_is_started_again(
    led: tuple[SessionDispatcher, JobStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not fail for good because a store did not answer while a master took over."""
    monkeypatch.setattr(sessions, "_POSTPONED_SECONDS", 0.05)
    session, store = led
    job = session.submit(packed(session))
    read, failures = store.unfinished_job, [StorageError("read", "s3://ha", "timeout")] * 3

    def fail_at_first(job_id: str) -> StoredJob | None:
        if failures:
            raise failures.pop()
        return read(job_id)

    monkeypatch.setattr(store, "unfinished_job", fail_at_first)
    start_without_zookeeper(job)
    wait_until(lambda: session.job(str(job.job_id)) is not job)
    assert failures == []
    assert not job.result().done()
    assert session.job(str(job.job_id)).status() is JobStatus.CREATED
    assert [one.job_id for one in store.unfinished()] == [str(job.job_id)]


def test_a_job_that_waits_for_its_entries_is_canceled_at_once(
    led: tuple[SessionDispatcher, JobStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_POSTPONED_SECONDS", 600.0)
    session, store = led
    job = session.submit(packed(session))
    start_without_zookeeper(job)
    wait_until(lambda: job._postponed is not None)
    job.cancel().result(60)
    assert job.status() is JobStatus.CANCELED
    assert job.wait_until_gone(60)
    assert session.job(str(job.job_id)) is job
    assert list(store.unfinished()) == []


def start_hanging(job: SessionJob) -> None:
    """Start the process of a job, which does nothing."""
    hanging = [sys.executable, "-c", "import time; time.sleep(600)"]
    popen = subprocess.Popen

    def start(_: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return popen(hanging, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(subprocess, "Popen", start)
        job.start(2, {}, "workers")


def test_a_job_that_does_not_end_with_its_session_continues_with_the_next_leader(
    led: tuple[SessionDispatcher, JobStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_END_SECONDS", 0.1)
    session, store = led
    job = session.submit(packed(session))
    start_hanging(job)
    assert not session.has_ended(job)
    session.close()
    assert job.wait_until_gone(60)
    assert job.status() is JobStatus.FAILED
    # Its client waits for the next leader.
    assert not session.has_ended(job)
    assert [one.job_id for one in store.unfinished()] == [str(job.job_id)]


@pytest.mark.parametrize("noted", [True, False])
def test_a_job_fails_for_good_if_its_master_has_noted_that(
    noted: bool, led: tuple[SessionDispatcher, JobStore]
) -> None:
    """A master whose Spark has died, or whose term has ended, leaves the job to the next one."""
    session, store = led
    job = session.submit(packed(session))
    if noted:
        store.note_end(str(job.job_id), "FAILED")
    failed = {"event": "ended", "status": "FAILED", "documents": {}, "details": {}, "runtime": 0}
    job._take({**failed, "error": encode_error(JobExecutionError("Spark could not run it"))})
    assert job.status() is JobStatus.FAILED
    assert session.has_ended(job) == noted
    assert bool(list(store.unfinished())) != noted


@pytest.mark.parametrize("masters", ["one", "several"])
def test_clients_wait_for_the_next_leader_when_a_session_of_several_ends(
    masters: str, make: Make, request: pytest.FixtureRequest
) -> None:
    session = make() if masters == "one" else request.getfixturevalue("led")[0]
    job = session.submit(packed(session))
    session.close()
    assert job.status() is JobStatus.SUSPENDED
    assert session.has_ended(job) == (masters == "one")


def test_a_job_that_is_postponed_when_its_session_ends_continues_with_the_next_leader(
    led: tuple[SessionDispatcher, JobStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_POSTPONED_SECONDS", 0.5)
    session, store = led
    job = session.submit(packed(session))
    start_without_zookeeper(job)
    wait_until(lambda: job._postponed is not None)
    session.close()
    assert job.wait_until_gone(60)
    assert [one.job_id for one in store.unfinished()] == [str(job.job_id)]


def test_a_job_whose_master_is_killed_after_its_cancellation_stays_canceled(
    led: tuple[SessionDispatcher, JobStore],
) -> None:
    session, store = led
    job = session.submit(packed(session))
    start_hanging(job)
    canceled = job.cancel()
    assert job.process_id is not None
    os.kill(job.process_id, signal.SIGKILL)
    canceled.result(60)
    assert job.status() is JobStatus.CANCELED
    assert session.job(str(job.job_id)) is job
    assert list(store.unfinished()) == []


def test_questions_do_not_pile_up_before_a_job_master_that_hangs(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no earlier answer, so they fail: the first after a while, the others at once."""
    monkeypatch.setattr(session_job, "_ANSWER_SECONDS", 0.05)
    session = make()
    job = session.submit(packed(session))
    asked: list[str] = []
    job._channel = Master(job, asked, answers=False)  # type: ignore[assignment]
    for _ in range(2):
        with pytest.raises(NoAnswerError, match="packed does not answer"):
            job.checkpoint_details(1)
    monkeypatch.setattr(session_job, "_ANSWER_SECONDS", 600.0)
    with pytest.raises(NoAnswerError):
        job.plan_rescale(2)
    with pytest.raises(NoAnswerError):
        job.ask_slot(0, 0, "log", {}).result(0)
    assert asked == ["checkpoint_details"]
    # Its next message ends that.
    job._take({"id": 1, "answer": None})
    job._channel = Master(job, asked)  # type: ignore[assignment]
    assert job.checkpoint_details(1) == 3  # type: ignore[comparison-overlap]
    job._channel = None


class Master:
    """Answers each call with 3 at once, or hangs."""

    def __init__(self, job: SessionJob, asked: list[str], *, answers: bool = True) -> None:
        self._job = job
        self._asked = asked
        self._answers = answers

    def send(self, message: dict[str, Any]) -> None:
        self._asked.append(message["call"])
        if self._answers:
            self._job._take({"id": message["id"], "answer": 3})
