"""The dispatcher of a session without Spark: submissions and their slots."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.client.packing import pack_job
from firesteel.common.configuration import Configuration
from firesteel.common.job_id import JobID
from firesteel.common.job_status import JobStatus
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.dispatcher import session as sessions
from firesteel.dispatcher import session_job
from firesteel.dispatcher.session import SessionDispatcher
from firesteel.dispatcher.session_job import SessionJob
from firesteel.dispatcher.slot_pool import NoResourceAvailableError
from firesteel.errors import InvalidProgramError
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
