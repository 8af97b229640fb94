"""Keys as bytes."""

from __future__ import annotations

import datetime as dt
import enum
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from firesteel.common import Row
from firesteel.errors import UnstableKeyError
from firesteel.state.key_encoding import (
    comes_back,
    decode_key,
    decode_last,
    encode_entry,
    encode_key,
)
from firesteel.state.stable_hash import stable_hash
from tests.thoroughness import examples

_ZONES = st.timezones() | st.integers(-1439, 1439).map(
    lambda minutes: dt.timezone(dt.timedelta(minutes=minutes))
)
_NUMBERS = (
    st.integers()
    | st.integers(-300, 300)
    | st.floats(allow_nan=False)
    | st.integers(-300, 300).map(float)
    | st.booleans()
    | st.decimals(allow_nan=False)
)
_FIXED_ZONES = st.integers(-1439, 1439).map(
    lambda minutes: dt.timezone(dt.timedelta(minutes=minutes))
)
_SCALARS = (
    _NUMBERS
    | st.none()
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.datetimes(
        dt.datetime(2, 1, 1),  # noqa: DTZ001
        dt.datetime(9998, 1, 1),  # noqa: DTZ001
        timezones=_ZONES,
        # A time that a clock skipped equals no time of another zone, not even itself in UTC.
        allow_imaginary=False,
    )
    | st.times()
    | st.times(timezones=_FIXED_ZONES)
    | st.timedeltas()
    | st.uuids()
)


def _named_row(fields: dict[str, Any]) -> Row:
    # Rows with the same names in another order are equal, but their hashes differ.
    return Row(**dict(sorted(fields.items())))


_KEYS = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(lambda values: Row(*values))
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3).map(_named_row)
        | st.frozensets(inner, max_size=3)
    ),
    max_leaves=6,
)


@given(_KEYS)
@settings(max_examples=examples(200), deadline=None)
def test_a_key_comes_back_equal(key: Any) -> None:
    encoded = encode_key(key)
    decoded, end = decode_key(encoded + b"and more")
    assert end == len(encoded)
    assert decoded == key
    assert stable_hash(decoded) == stable_hash(key)
    assert repr(decode_last(b"head" + encoded, 4)) == repr(decoded)
    if comes_back(key):
        assert type(decoded) is type(key)
        assert repr(decoded) == repr(key)


@given(_KEYS, _KEYS)
@settings(max_examples=examples(200), deadline=None)
def test_keys_are_equal_if_and_only_if_their_bytes_are(one: Any, other: Any) -> None:
    assert (encode_key(one) == encode_key(other)) == (one == other)


@given(_NUMBERS, _NUMBERS)
def test_numbers_are_equal_if_and_only_if_their_bytes_are(one: Any, other: Any) -> None:
    assert (encode_key(one) == encode_key(other)) == (one == other)


@given(_KEYS, _KEYS)
@settings(max_examples=examples(200), deadline=None)
def test_no_key_is_the_beginning_of_another(one: Any, other: Any) -> None:
    assume(one != other)
    assert not encode_key(one).startswith(encode_key(other))


@pytest.mark.parametrize(
    "kind",
    [
        st.integers() | st.integers(-(2**200), 2**200),
        st.floats(allow_nan=False, allow_infinity=False).filter(lambda f: not f.is_integer()),
        st.text(st.characters(codec="utf-8")),
        st.binary(),
        st.dates(),
        st.datetimes(),
        st.timedeltas(),
        st.tuples(st.text(st.characters(codec="utf-8")), st.integers()),
    ],
)
def test_bytes_are_in_the_order_of_the_keys(kind: Any) -> None:
    @given(st.lists(kind, max_size=20))
    def check(keys: list[Any]) -> None:
        assert sorted(keys, key=encode_key) == sorted(keys)

    check()


class Point(NamedTuple):
    x: int
    y: int


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


def test_subclasses_are_encoded_as_what_they_equal() -> None:
    assert encode_key(Point(1, 2)) == encode_key((1, 2))
    assert encode_key(Level.LOW) == encode_key(1)
    assert decode_key(encode_key(Color.RED))[0] is Color.RED
    assert not any(map(comes_back, [Point(1, 2), Level.LOW, True, 1.0, (1, True)]))
    assert comes_back(Color.RED)


class Window:
    """A namespace, which may be any object that can be pickled."""

    def __init__(self, start: int) -> None:
        self.start = start

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Window) and other.start == self.start

    def __hash__(self) -> int:
        return hash(self.start)


@pytest.mark.parametrize(
    "entry", [Window(5), (7, Window(5)), frozenset({Window(5), 1}), Row(Window(1)), [1, 2]]
)
def test_entries_may_be_any_object(entry: Any) -> None:
    encoded = encode_entry(entry)
    assert decode_key(encoded) == (entry, len(encoded))
    with pytest.raises(UnstableKeyError):
        encode_key(entry)


@given(_KEYS)
def test_an_entry_that_is_a_key_is_encoded_as_one(key: Any) -> None:
    assert encode_entry(key) == encode_key(key)


@pytest.mark.parametrize("key", [object(), [1], float("nan"), (1, object())])
def test_what_cannot_be_a_key_is_refused(key: Any) -> None:
    with pytest.raises(UnstableKeyError):
        encode_key(key)
