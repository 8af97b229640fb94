import pytest

from firesteel.errors import InvalidProgramError
from firesteel.graph.parallelism import (
    check_max_parallelism,
    check_parallelism,
    default_max_parallelism,
    resolve_max_parallelism,
)


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    [
        (1, 128),
        (85, 128),
        (86, 256),  # 86 + 43 = 129
        (100, 256),
        (170, 256),
        (171, 256),
        (172, 512),
        (21845, 32768),
        (32768, 32768),
    ],
)
def test_default_max_parallelism_follows_flinks_rule(parallelism, expected):
    assert default_max_parallelism(parallelism) == expected


def test_first_configured_maximum_wins():
    assert resolve_max_parallelism("Map", 2, None, 16) == 16
    assert resolve_max_parallelism("Map", 2, 8, 16) == 8
    assert resolve_max_parallelism("Map", 2, None, None) == 128


def test_parallelism_above_maximum_names_the_operator():
    with pytest.raises(InvalidProgramError, match=r"'Map': the parallelism 9 is higher than .* 8"):
        resolve_max_parallelism("Map", 9, 8)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", None, True])
def test_wrong_parallelism(wrong):
    with pytest.raises(InvalidProgramError, match="at least 1"):
        check_parallelism(wrong)


@pytest.mark.parametrize("wrong", [0, -1, 32769, "2", True])
def test_wrong_max_parallelism(wrong):
    with pytest.raises(InvalidProgramError, match="between 1 and 32768"):
        check_max_parallelism(wrong)
