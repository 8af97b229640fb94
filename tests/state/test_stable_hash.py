"""The hash that assigns keys to key groups."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import json
import os
import subprocess
import sys
import uuid
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Row
from firesteel.errors import UnstableKeyError
from firesteel.state.stable_hash import mix, stable_hash
from tests.parameter_ids import without_address


class Point(NamedTuple):
    x: int
    y: int


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Mode(enum.StrEnum):
    FAST = "fast"


class Stamp(dt.datetime):
    """A subclass of datetime, like pandas.Timestamp."""


_CET = dt.timezone(dt.timedelta(hours=1))

# A changed value here means that state of existing jobs is looked for in the wrong place.
GOLDEN = {
    "0": (0, 0),
    "1": (1, 1364076727),
    "-1": (-1, 2269409358),
    "2**40 + 7": (2**40 + 7, 2694430292),
    "0.5": (0.5, 2652485600),
    "str": ("spark", 3839880071),
    "non-ascii": ("Gött\ud800", 2454777165),
    "bytes": (b"\x00\xff", 2478230268),
    "None": (None, 3758135754),
    "tuple": (("a", 1, None), 3790857151),
    "nested": ((("a",), (1, 2)), 1401403394),
    "Row": (Row("a", 1), 2962579253),
    "frozenset": (frozenset({"a", "b", "c"}), 1486946185),
    "date": (dt.date(2024, 2, 29), 125654677),
    "time": (dt.time(12, 30), 1272195419),
    "datetime": (dt.datetime(2024, 2, 29, 12, 30), 127297157),  # noqa: DTZ001
    "aware": (dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC), 1390293458),
    "timedelta": (dt.timedelta(days=1, microseconds=5), 3320072750),
    "Decimal": (decimal.Decimal("0.1"), 1427318856),
    "UUID": (uuid.UUID(int=7), 4260508007),
    "Enum": (Color.RED, 1703404178),
}


@pytest.mark.parametrize("name", list(GOLDEN))
def test_golden_values(name: str) -> None:
    key, expected = GOLDEN[name]
    assert stable_hash(key) == expected


def test_another_process_with_another_seed_agrees() -> None:
    program = (
        "import json; from tests.state.test_stable_hash import GOLDEN, stable_hash;"
        "print(json.dumps([stable_hash(key) for key, _ in GOLDEN.values()]))"
    )
    answers = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", program],
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
                check=True,
                capture_output=True,
            ).stdout
        )
        for seed in ("1", "2")
    ]
    assert answers == [[value for _, value in GOLDEN.values()]] * 2


@pytest.mark.parametrize(
    "equal",
    [
        (1, 1.0, True, decimal.Decimal(1), Level.LOW),
        (0, -0.0, False, decimal.Decimal("-0")),
        (0.5, decimal.Decimal("0.5"), decimal.Decimal("0.50")),
        (2**70, float(2**70), decimal.Decimal(2**70)),
        (float("inf"), decimal.Decimal("Infinity")),
        ("fast", Mode.FAST),
        ((1, 2), (1.0, 2.0), Point(1, 2)),
        (decimal.Decimal("1.10"), decimal.Decimal("1.1")),
        (
            dt.datetime(2024, 1, 1, 13, tzinfo=_CET),
            dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC),
            Stamp(2024, 1, 1, 13, tzinfo=_CET),
        ),
        (dt.time(13, tzinfo=_CET), dt.time(12, tzinfo=dt.UTC)),
        (frozenset([1, 2]), frozenset([2.0, 1.0])),
    ],
    ids=str,
)
def test_equal_keys_hash_alike(equal: tuple[object, ...]) -> None:
    assert all(key == equal[0] for key in equal)
    assert len({stable_hash(key) for key in equal}) == 1


_numbers = st.one_of(
    st.integers(), st.floats(allow_nan=False), st.booleans(), st.decimals(allow_nan=False, places=2)
)


@given(_numbers, _numbers)
def test_equal_numbers_hash_alike(a: object, b: object) -> None:
    if a == b:
        assert stable_hash(a) == stable_hash(b)


@given(st.integers(-(2**53), 2**53))
def test_a_whole_number_hashes_alike_in_every_type(number: int) -> None:
    assert stable_hash(number) == stable_hash(float(number))
    assert stable_hash(number) == stable_hash(decimal.Decimal(number))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_and_its_decimal_hash_alike(number: float) -> None:
    assert stable_hash(number) == stable_hash(decimal.Decimal(number))


_keys = st.recursive(
    st.one_of(
        st.none(),
        _numbers,
        st.text(),
        st.binary(),
        st.dates(),
        st.times(),
        st.datetimes(),
        st.timedeltas(),
        st.uuids(),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3).map(tuple), st.frozensets(inner)),
    max_leaves=5,
)


@given(_keys)
def test_every_kind_of_key_has_32_bits(key: object) -> None:
    assert 0 <= stable_hash(key) < 2**32
    assert stable_hash(key) == stable_hash(key)


@pytest.mark.parametrize(
    "key",
    [object(), [1], {"a": 1}, float("nan"), decimal.Decimal("NaN"), ("a", object()), {1, 2}],
    ids=without_address,
)
def test_what_has_no_stable_hash_is_refused(key: object) -> None:
    with pytest.raises(UnstableKeyError):
        stable_hash(key)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_mix_loses_nothing(a: int, b: int) -> None:
    assert (mix(a) == mix(b)) == (a == b)


def test_small_ints_spread_over_the_key_groups() -> None:
    counts = [0] * 128
    for key in range(12_800):
        counts[stable_hash(key) % 128] += 1
    assert max(counts) < 150
    assert min(counts) > 50
