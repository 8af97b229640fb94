"""Samples of stacks: threads that compute and threads that wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from firesteel.sampling import sample_stacks


@contextmanager
def running(work: Callable[[threading.Event], None]) -> Iterator[dict[int, int]]:
    """Run a function in a thread until the block ends. Yield the ids of the thread."""
    ending = threading.Event()
    thread = threading.Thread(target=work, args=(ending,), daemon=True)
    thread.start()
    assert thread.ident is not None
    assert thread.native_id is not None
    yield {thread.ident: thread.native_id}
    ending.set()
    thread.join()


def compute(ending: threading.Event) -> None:
    number = 1
    while not ending.is_set():
        number = number * 7 % 1_000_003


def wait(ending: threading.Event) -> None:
    ending.wait()


def samples(threads: dict[int, int], function: str, *, on_cpu: bool) -> int:
    return sum(
        sample["samples"]
        for sample in sample_stacks(threads, 0.3)
        if sample["on_cpu"] == on_cpu and any(function in one for one in sample["functions"])
    )


def test_a_thread_that_computes_is_on_the_processor() -> None:
    with running(compute) as threads:
        assert samples(threads, "test_sampling.compute:", on_cpu=True) > 0


def test_a_thread_that_waits_is_not() -> None:
    with running(wait) as threads:
        found = sample_stacks(threads, 0.3)
        most = max(found, key=lambda one: one["samples"])
        assert not most["on_cpu"]
        assert most["functions"][-1].startswith("threading.Condition.wait:")


def test_functions_around_a_module_are_left_out() -> None:
    with running(wait) as threads:
        found = sample_stacks(threads, 0.1, outermost=__name__)
        assert all("test_sampling" not in name for one in found for name in one["functions"])


def test_a_thread_that_has_ended_is_not_sampled() -> None:
    with running(wait) as threads:
        pass
    assert sample_stacks(threads, 0.05) == []
