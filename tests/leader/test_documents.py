"""Signed entries: damaged and foreign ones are named and skipped."""

from __future__ import annotations

import json
import logging

import pytest

from firesteel.leader.documents import Documents, UnusableEntryError


class MemoryStore:
    """Entries in memory."""

    term = 3

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], bytes] = {}

    def names(self, kind: str) -> list[str]:
        return sorted(name for of, name in self.entries if of == kind)

    def get(self, kind: str, name: str) -> bytes | None:
        return self.entries.get((kind, name))

    def put(self, kind: str, name: str, payload: bytes) -> None:
        self.entries[kind, name] = payload

    def delete(self, kind: str, name: str) -> None:
        self.entries.pop((kind, name), None)

    def check(self) -> None:
        """The term of this store never ends."""


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def documents(store: MemoryStore) -> Documents:
    return Documents(store, "group", b"key")


def test_an_entry_comes_back(documents, store):
    documents.put("jobs", "a", {"name": "orders", "files": [1, None]})
    assert documents.get("jobs", "a") == {"name": "orders", "files": [1, None]}
    assert documents.get("jobs", "b") is None
    assert json.loads(store.entries["jobs", "a"])["term"] == 3


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "damaged"),
        (b"\x80\x04.", "damaged"),
        (b"[1]", "damaged"),
        (b"null", "damaged"),
        (b'{"body": {}}', "damaged"),
        (b'{"version": 9, "group": "group", "body": {}, "signature": ""}', "format 9"),
        (b'{"version": 1, "group": "other", "body": {}, "signature": ""}', "group 'other'"),
        (b'{"version": 1, "group": "group", "body": {}, "signature": ""}', "signature"),
        (b'{"version": 1, "group": "group", "body": {}, "signature": 7}', "signature"),
        (b'{"version": 1, "group": "group", "body": 7, "signature": ""}', "jobs/bad"),
        ('{"version": 1, "group": "group", "body": {}, "signature": "é"}'.encode(), "signature"),
        (b"[" * 100_000, "damaged"),
    ],
)
def test_unusable_entries_are_named_and_skipped(documents, store, payload, reason, caplog):
    documents.put("jobs", "good", {"x": 1})
    store.entries["jobs", "bad"] = payload
    with pytest.raises(UnusableEntryError, match="jobs/bad") as refused:
        documents.get("jobs", "bad")
    assert reason in str(refused.value)
    with caplog.at_level(logging.ERROR, logger="firesteel"):
        assert documents.all("jobs") == {"good": {"x": 1}}
    assert "jobs/bad" in caplog.text


def test_a_changed_entry_is_refused(documents, store):
    documents.put("jobs", "a", {"digest": "1"})
    document = json.loads(store.entries["jobs", "a"])
    document["body"]["digest"] = "2"
    store.entries["jobs", "a"] = json.dumps(document).encode()
    with pytest.raises(UnusableEntryError, match="signature"):
        documents.get("jobs", "a")


def test_an_entry_cannot_be_moved_to_a_different_name(documents, store):
    documents.put("jobs", "a", {"x": 1})
    store.entries["jobs", "b"] = store.entries["jobs", "a"]
    store.entries["ended", "a"] = store.entries["jobs", "a"]
    for kind, name in (("jobs", "b"), ("ended", "a")):
        with pytest.raises(UnusableEntryError, match="signature"):
            documents.get(kind, name)


def test_a_different_key_does_not_read_the_entries(documents, store):
    documents.put("jobs", "a", {"x": 1})
    assert Documents(store, "group", b"different").all("jobs") == {}
