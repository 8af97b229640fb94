"""SingleThread: an executor that does not end with the main thread."""

from __future__ import annotations

import pytest

from firesteel.master.edge import SingleThread


def test_work_is_done_in_order_and_errors_reach_the_owner_of_the_future() -> None:
    done: list[int] = []
    thread = SingleThread("worker")
    futures = [thread.submit(done.append, number) for number in range(100)]
    failing = thread.submit(int, "no number")
    thread.shutdown(wait=True)
    assert done == list(range(100))
    assert all(future.done() for future in futures)
    with pytest.raises(ValueError, match="no number"):
        failing.result()
    with pytest.raises(RuntimeError, match="worker has been shut down"):
        thread.submit(print)
