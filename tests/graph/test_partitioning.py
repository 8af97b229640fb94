import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.graph.partitioning import ShipStrategy, source_subtasks, target_subtasks


@pytest.mark.parametrize(
    ("sources", "targets", "expected"),
    [
        (2, 4, [[0, 1], [2, 3]]),
        (4, 2, [[0], [0], [1], [1]]),
        (3, 3, [[0], [1], [2]]),
        (2, 3, [[0, 1], [2]]),
        (3, 2, [[0], [1], [1]]),
    ],
)
def test_rescale(sources, targets, expected):
    assert [
        list(target_subtasks(ShipStrategy.RESCALE, source, sources, targets))
        for source in range(sources)
    ] == expected


def test_forward_and_all_to_all():
    assert list(target_subtasks(ShipStrategy.FORWARD, 1, 3, 3)) == [1]
    assert list(source_subtasks(ShipStrategy.FORWARD, 1, 3, 3)) == [1]
    assert list(target_subtasks(ShipStrategy.HASH, 1, 3, 2)) == [0, 1]
    assert list(source_subtasks(ShipStrategy.HASH, 1, 3, 2)) == [0, 1, 2]


@given(st.integers(1, 40), st.integers(1, 40))
def test_rescale_leaves_nobody_out_and_both_sides_agree(sources, targets):
    forward = {
        (source, target)
        for source in range(sources)
        for target in target_subtasks(ShipStrategy.RESCALE, source, sources, targets)
    }
    backward = {
        (source, target)
        for target in range(targets)
        for source in source_subtasks(ShipStrategy.RESCALE, target, sources, targets)
    }
    assert forward == backward
    assert {source for source, _ in forward} == set(range(sources))
    assert {target for _, target in forward} == set(range(targets))
