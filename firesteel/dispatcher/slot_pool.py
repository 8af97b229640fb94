"""The slots of a session, and the jobs that wait for some. Pure: it starts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from firesteel.errors import FiresteelError


class NoResourceAvailableError(FiresteelError, RuntimeError):
    """A job needs more slots than the session has, or than became free in time."""

    def __init__(self, needed: int, free: int, total: int, reason: str) -> None:
        super().__init__(needed, free, total, reason)
        self.needed = needed
        self.free = free
        self.total = total
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"The job needs {self.needed} slots. The session has {self.total}, and {self.free} of "
            f"them are free: {self.reason}. Lower the parallelism, cancel a job, or start a session "
            "with more slots (for example --master 'local[128]')."
        )


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """The numbers of slots that a job can run with, the preferred one first."""

    job_id: str
    choices: tuple[int, ...]


class SlotPool:
    """Gives slots to jobs in the order of their requests."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._taken: dict[str, int] = {}
        self._waiting: list[SlotRequest] = []

    @property
    def free(self) -> int:
        return self.total - sum(self._taken.values())

    def taken_by(self, job_id: str) -> int:
        return self._taken.get(job_id, 0)

    def waiting(self) -> Sequence[str]:
        return [request.job_id for request in self._waiting]

    def request(self, request: SlotRequest) -> None:
        """Let a job wait for its slots.

        Raises:
            NoResourceAvailableError: The job needs more slots than the session has.
        """
        least = min(request.choices)
        if least > self.total:
            raise NoResourceAvailableError(
                least, self.free, self.total, "it would never get that many"
            )
        self._waiting.append(request)

    def grant(self) -> list[tuple[str, int]]:
        """Give slots to the jobs that wait, the first one first, and return their numbers by job.

        A job that needs many slots is not overtaken forever: no later job gets slots before it.
        """
        granted = []
        while self._waiting:
            request = self._waiting[0]
            fitting = [count for count in request.choices if count <= self.free]
            if not fitting:
                break
            self._waiting.pop(0)
            self._taken[request.job_id] = fitting[0]
            granted.append((request.job_id, fitting[0]))
        return granted

    def resize(self, job_id: str, slots: int) -> None:
        """Change the number of slots of a running job.

        Raises:
            NoResourceAvailableError: Too few are free.
        """
        free = self.free + self.taken_by(job_id)
        if slots > free:
            raise NoResourceAvailableError(
                slots, free, self.total, "those of the job itself included"
            )
        self._taken[job_id] = slots

    def refuse(self, job_id: str, reason: str) -> NoResourceAvailableError:
        """Let a job wait no longer, and return the error for it."""
        request = next(one for one in self._waiting if one.job_id == job_id)
        self.release(job_id)
        return NoResourceAvailableError(min(request.choices), self.free, self.total, reason)

    def release(self, job_id: str) -> None:
        """Take the slots of a job back, or its request."""
        self._taken.pop(job_id, None)
        self._waiting = [request for request in self._waiting if request.job_id != job_id]
