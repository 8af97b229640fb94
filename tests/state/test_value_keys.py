"""Keys that Python cannot hash."""

from __future__ import annotations

import pickle
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.checkpoint.savepoints.plain_pickle import foreign_class
from firesteel.common import Row
from firesteel.state.key_encoding import decode_key, encode_key
from firesteel.state.stable_hash import stable_hash
from firesteel.state.value_keys import ArrayKey, hashable_key

_KEYS: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.lists(inner, max_size=3).map(lambda values: Row(*values))
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.sets(st.integers(0, 9), max_size=3)
        | st.binary(max_size=3).map(bytearray)
        | st.lists(st.integers(0, 9), max_size=3).map(lambda numbers: array("i", numbers))
    ),
    max_leaves=6,
)


def _copy(value: Any) -> Any:
    """The same key, made anew and with its dictionaries in another order."""
    if isinstance(value, dict):
        return {name: _copy(content) for name, content in reversed(value.items())}
    if isinstance(value, list | tuple):
        return type(value)(map(_copy, value))
    if isinstance(value, Row):
        return Row(*map(_copy, value))
    return pickle.loads(pickle.dumps(value))


@given(_KEYS)
def test_a_key_equals_the_original_and_has_one_hash(original: Any) -> None:
    key, again = hashable_key(original), hashable_key(_copy(original))
    assert key == original
    assert {key: "found"}[again] == "found"
    assert stable_hash(key) == stable_hash(again)


@given(_KEYS)
def test_a_key_travels_and_is_stored(original: Any) -> None:
    key = hashable_key(original)
    pickled = pickle.dumps(key)
    assert hash(pickle.loads(pickled)) == hash(key)
    assert pickle.loads(pickled) == key
    assert foreign_class(pickled) is None
    encoded = encode_key(key)
    assert encoded == encode_key(hashable_key(_copy(original)))
    decoded, end = decode_key(encoded + b"more")
    assert end == len(encoded)
    if "array" not in repr(original):
        assert decoded == key
        assert stable_hash(decoded) == stable_hash(key)


@given(_KEYS, _KEYS)
def test_keys_that_differ_have_different_bytes(one: Any, other: Any) -> None:
    one, other = hashable_key(one), hashable_key(other)
    assert (encode_key(one) == encode_key(other)) == (one == other)


def test_an_object_without_a_hash_stays_refused() -> None:
    class NoHash:
        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(TypeError, match="NoHash"):
        hashable_key([NoHash()])


def test_an_array_shows_as_an_array() -> None:
    key = hashable_key(array("d", [0.5]))
    assert isinstance(key, ArrayKey)
    assert repr(key) == repr(array("d", [0.5]))
    assert pickle.loads(pickle.dumps(key)).typecode == "d"
