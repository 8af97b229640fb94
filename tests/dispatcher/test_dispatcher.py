"""The dispatcher with jobs that end when the test says so."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from firesteel.common.configuration import Configuration
from firesteel.common.job_id import JobID
from firesteel.dispatcher.dispatcher import Dispatcher, UnknownJobError
from firesteel.master.job_description import JobDescription


class Job:
    def __init__(self, *, is_live: bool = False) -> None:
        self.job_id = JobID.generate()
        self._result: Future[Any] = Future()
        self._is_live = is_live

    def description(self) -> JobDescription:
        return JobDescription(str(self.job_id), "job", False, (2, 3), ())

    def overview(self) -> dict[str, Any]:
        return {"is_live": self._is_live}

    def result(self) -> Future[Any]:
        return self._result

    def end(self) -> None:
        self._result.set_result(None)


def make_dispatcher(history: int) -> Dispatcher:
    return Dispatcher(Configuration().set_integer("web.history", history))


def add_jobs(dispatcher: Dispatcher, count: int) -> list[Any]:
    jobs = [Job() for _ in range(count)]
    for job in jobs:
        dispatcher.add(job)  # type: ignore[arg-type]
    return jobs


def test_jobs_are_listed_in_the_order_of_submission() -> None:
    dispatcher = make_dispatcher(5)
    jobs = add_jobs(dispatcher, 3)
    jobs[1].end()
    assert dispatcher.jobs() == jobs


def test_a_job_in_real_time_occupies_the_slots_of_all_its_levels() -> None:
    dispatcher = make_dispatcher(5)
    live, in_epochs = Job(is_live=True), Job()
    for job in (live, in_epochs):
        dispatcher.add(job)  # type: ignore[arg-type]
    assert dispatcher.slots().by_job == {str(live.job_id): 5, str(in_epochs.job_id): 3}
    live.end()
    assert dispatcher.slots().by_job == {str(in_epochs.job_id): 3}


def test_a_job_is_found_by_its_id() -> None:
    dispatcher = make_dispatcher(5)
    job = add_jobs(dispatcher, 2)[0]
    assert dispatcher.job(str(job.job_id)) is job


def test_an_unknown_job_is_refused_with_its_id() -> None:
    with pytest.raises(UnknownJobError, match="Job 0123 not found"):
        make_dispatcher(5).job("0123")


def test_finished_jobs_beyond_the_history_are_forgotten_and_running_ones_stay() -> None:
    dispatcher = make_dispatcher(2)
    jobs = add_jobs(dispatcher, 5)
    for job in (jobs[3], jobs[0], jobs[2]):
        job.end()
    assert dispatcher.jobs() == [jobs[1], jobs[2], jobs[3], jobs[4]]


def test_without_a_history_a_job_is_forgotten_at_its_end() -> None:
    dispatcher = make_dispatcher(0)
    (job,) = add_jobs(dispatcher, 1)
    job.end()
    assert dispatcher.jobs() == []
