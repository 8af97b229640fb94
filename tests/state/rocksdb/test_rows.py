"""Rows of batches equal those of single keys."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.checkpoint.savepoints.keyed_state_files import write_frozen_state
from firesteel.checkpoint.storage.storage import open_storage
from firesteel.checkpoint.storage.verification import facts_of
from firesteel.common import Types
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.backend_factory import StateBackendSettings, create_keyed_state
from firesteel.state.changelog import SegmentStore
from firesteel.state.rocksdb.rows import RowFormat, moved_to_table
from firesteel.state.table_descriptions import TableDescription, TableKind
from firesteel.state.tables import MISSING

_INTS = st.integers(-5, 1 << 66)
_PLAIN = st.one_of(_INTS, st.text(max_size=5), st.floats(allow_nan=False), st.booleans(), st.none())
_KEYS = st.one_of(
    st.lists(st.integers(1, 1 << 40), max_size=20),
    st.lists(_INTS, max_size=20),
    st.lists(st.text(max_size=8), max_size=20),
    st.lists(st.one_of(_PLAIN, st.tuples(_PLAIN, _PLAIN)), max_size=20),
)
_VALUES = st.one_of(_PLAIN, st.tuples(_PLAIN, _PLAIN), st.lists(_PLAIN, max_size=3))


@pytest.mark.parametrize("ttl", [False, True])
@given(keys=_KEYS, data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_batch_is_encoded_as_its_keys_and_values(ttl: bool, keys: list[Any], data: Any) -> None:
    rows = RowFormat(3, TableDescription(TableKind.VALUE, False, None, ttl=ttl), 128)
    values = [data.draw(_VALUES) for _ in keys]
    elements = [(value, 7) for value in values] if ttl else values
    assert rows.prefixes(keys) == [rows.prefix(key) for key in keys]
    encoded = rows.values(keys, elements)
    assert encoded == [
        rows.value((key,), element) for key, element in zip(keys, elements, strict=True)
    ]
    assert list(map(repr, rows.elements(encoded))) == list(map(repr, elements))


@pytest.mark.parametrize("namespaced", [False, True])
def test_a_reader_of_a_batch_finds_the_values_of_the_base(namespaced: bool) -> None:
    backend = create_keyed_state(StateBackendSettings("rocksdb", memory_bytes=8 << 20), None, 128)
    keys: list[Any] = [*range(-3, 40), *map(str, range(40)), 2.5, (1, "a"), None]
    if namespaced:
        keys = [(key, 7) for key in keys]
    try:
        table = backend.value_table("values", namespaced=namespaced)
        for number, key in enumerate(keys):
            table.put(key, (key, number))
        backend.seal(1, SegmentStore(None, 1 << 20))
        backend.confirm()
        table.remove(keys[0])
        table.put(keys[1], "new")
        absent = ("absent", 7) if namespaced else "absent"
        get = table.reader([*keys, *keys[:5], absent])
        assert [get(key, MISSING) for key in keys[2:]] == [
            (key, number) for number, key in enumerate(keys)
        ][2:]
        assert get(absent, MISSING) is MISSING
        # Few keys are read one by one.
        assert table.reader(keys[5:7])(keys[6], MISSING) == (keys[6], 6)
    finally:
        backend.close()


def test_rows_of_the_wanted_table_stay_as_they_are() -> None:
    rows = [b"\x00\x03\x00\x01a", b"\x00\x03\x00\x02b"]
    assert moved_to_table(rows, b"\x00\x03") is rows
    assert moved_to_table(rows, b"\x00\x07") == [b"\x00\x07\x00\x01a", b"\x00\x07\x00\x02b"]
    assert moved_to_table([], b"\x00\x03") == []


@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]])
def test_tables_of_a_savepoint_are_found_by_name_whatever_their_numbers(
    tmp_path: Path, order: list[str]
) -> None:
    """The tables have more rows than a chunk."""
    settings = StateBackendSettings("rocksdb", (str(tmp_path / "local"),))

    def create() -> KeyedStateBackend:
        return create_keyed_state(settings, Types.LONG(), 128)

    def tables(backend: KeyedStateBackend, names: list[str]) -> dict[str, Any]:
        return {name: backend.value_table(name, element_type=Types.STRING()) for name in names}

    with closing(create()) as backend, closing(create()) as restored:
        for name, table in tables(backend, ["a", "b"]).items():
            for key in range(2_500):
                table.put(key, f"{name}{key}")
        backend.seal(1, SegmentStore(None, 0))
        backend.confirm()
        found = tables(restored, order)
        storage = open_storage(str(tmp_path / "savepoint"))
        frozen = backend.freeze(128)
        for file in write_frozen_state(frozen, storage, "state", key_type=Types.LONG()):
            restored.load(storage.read("state-0", facts_of(file)))
        frozen.release()
        for name, table in found.items():
            assert [table.get(key) for key in range(2_501)] == [
                *(f"{name}{key}" for key in range(2_500)),
                MISSING,
            ]
