"""Checkpoints of several runs, whose clocks are wrong."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from firesteel.checkpoint.metadata import Ancestor, CheckpointMetadata
from firesteel.checkpoint.rules.completed_checkpoint import CompletedCheckpoint
from firesteel.checkpoint.rules.lineage import lineage_after, newest_first
from tests.checkpoint.builders import metadata


def checkpoint(
    run: str,
    number: int,
    time: int,
    restored: CompletedCheckpoint | None = None,
    order: int = 0,
) -> CompletedCheckpoint:
    content = replace(
        metadata(checkpoint_id=number),
        job_id=run,
        completion_time=time,
        run=order,
        lineage=() if restored is None else lineage_after(restored.metadata),
    )
    return CompletedCheckpoint(content, f"/{run}/chk-{number}")


def names(checkpoints: list[CompletedCheckpoint]) -> list[str]:
    return [f"{one.metadata.job_id}{one.checkpoint_id}" for one in checkpoints]


def test_a_restored_run_is_newer_than_its_origin_whatever_the_clocks_say() -> None:
    """The clock of the first driver is ahead."""
    a1, a2 = checkpoint("a", 1, 600_000), checkpoint("a", 2, 601_000)
    b3 = checkpoint("b", 3, 2_000, a2)
    c4 = checkpoint("c", 4, 1_000, b3)
    assert names(newest_first([a1, a2, b3])) == ["b3", "a2", "a1"]
    assert names(newest_first([b3, a2, c4, a1])) == ["c4", "b3", "a2", "a1"]
    # The checkpoints of a run in between may be deleted.
    assert names(newest_first([a2, c4, a1])) == ["c4", "a2", "a1"]


def test_within_a_run_numbers_decide() -> None:
    assert names(newest_first([checkpoint("a", 2, 10), checkpoint("a", 3, 5)])) == ["a3", "a2"]


def test_time_decides_between_runs_that_are_not_related() -> None:
    a1, b1 = checkpoint("a", 1, 1_000), checkpoint("b", 1, 2_000)
    assert names(newest_first([a1, b1])) == ["b1", "a1"]
    # Both were restored from a1.
    c2, d2 = checkpoint("c", 2, 9_000, a1), checkpoint("d", 2, 8_000, a1)
    assert names(newest_first([d2, a1, c2])) == ["c2", "a1", "d2"]


def test_the_number_of_a_run_decides_before_the_time() -> None:
    """The user went back to a1 after c, whose clock was ahead."""
    a1 = checkpoint("a", 1, 1_000, order=1)
    c2 = checkpoint("c", 2, 900_000, a1, order=2)
    d2 = checkpoint("d", 2, 3_000, a1, order=3)
    assert names(newest_first([c2, a1, d2])) == ["d2", "a1", "c2"]
    # Firesteel 0.1 wrote no numbers.
    old = checkpoint("old", 9, 950_000)
    assert names(newest_first([old, c2, a1, d2])) == ["d2", "a1", "c2", "old9"]


def test_a_run_that_was_passed_over_comes_last() -> None:
    """The user went back to a1, although there was a2."""
    a1, a2 = checkpoint("a", 1, 1_000), checkpoint("a", 2, 9_000)
    b2 = checkpoint("b", 2, 3_000, a1)
    assert names(newest_first([a2, a1, b2])) == ["b2", "a1", "a2"]


def test_a_lineage_has_a_limit() -> None:
    last = metadata()
    for number in range(500):
        last = replace(last, job_id=f"job-{number}", lineage=lineage_after(last))
    assert len(last.lineage) == 200
    assert last.lineage[-1] == Ancestor("job-498", 7)


@dataclass
class Driver:
    run: int
    clock: int
    restored: CompletedCheckpoint | None
    completed: list[CompletedCheckpoint] = field(default_factory=list)


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("complete"), st.integers(1, 1000)),
        st.tuples(st.just("resume"), st.integers(-3_600_000, 3_600_000)),
        st.tuples(st.just("delete"), st.integers(0, 20)),
    ),
    max_size=40,
)


@given(_STEPS)
def test_a_job_that_is_always_resumed_from_its_directory_never_goes_back(
    steps: list[tuple[str, int]],
) -> None:
    """Each driver has a clock of its own, and any checkpoint but the last may be deleted."""
    stored: list[CompletedCheckpoint] = []
    last: CompletedCheckpoint | None = None
    driver = Driver(0, 0, None)
    for step, value in steps:
        if step == "complete":
            driver.clock += value
            number = 1 if last is None else last.checkpoint_id + 1
            last = checkpoint(f"run-{driver.run}-", number, driver.clock, driver.restored)
            stored.append(last)
        elif step == "resume":
            found = newest_first(stored)
            assert (found[0] if found else None) is last
            driver = Driver(driver.run + 1, value, last)
        elif stored and stored[value % len(stored)] is not last:
            del stored[value % len(stored)]
    ordered = newest_first(stored)
    assert sorted(map(id, ordered)) == sorted(map(id, stored))
    for position, older in enumerate(ordered):
        assert not any(_is_after(older, newer) for newer in ordered[:position])


def _is_after(one: CompletedCheckpoint, other: CompletedCheckpoint) -> bool:
    content: CheckpointMetadata = one.metadata
    return content.is_after(other.metadata)
