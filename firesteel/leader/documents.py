"""Entries of a group as signed JSON documents. Reading one runs no code.

The signature is made with a key that the masters of a group share, and covers the name of the group
and of the entry. So a master can tell the entries that its group wrote from all others. It unpickles
functions only from files whose digest is in such an entry.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from typing import Any

from firesteel.errors import FiresteelError
from firesteel.leader.services import TermStore

_log = logging.getLogger("firesteel")

_VERSION = 1


class UnusableEntryError(FiresteelError, ValueError):
    """An entry is damaged, or a different group wrote it."""


class Documents:
    """Reads and writes the documents of a group.

    Args:
        store: The entries, for one term.
        group: The name of the group of masters.
        key: The key that its masters share.
    """

    def __init__(self, store: TermStore, group: str, key: bytes) -> None:
        self.store = store
        self._group = group
        self._key = key

    def put(self, kind: str, name: str, body: dict[str, Any]) -> None:
        """Write an entry. Raises LeadershipLostError if the term has ended."""
        document: dict[str, Any] = {
            "version": _VERSION,
            "group": self._group,
            "term": self.store.term,
            "body": body,
        }
        document["signature"] = self._signature(kind, name, document)
        self.store.put(kind, name, json.dumps(document).encode())

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        """Return an entry, or None if there is none.

        Raises:
            UnusableEntryError: It is damaged or foreign.
        """
        try:
            payload = self.store.get(kind, name)
        except (ValueError, IsADirectoryError) as error:
            raise UnusableEntryError(
                f"The entry {kind}/{name} is not one that a master writes: {error}."
            ) from error
        if payload is None:
            return None
        try:
            document = json.loads(payload)
            signature, body = document.pop("signature"), document["body"]
            version, group = document["version"], document["group"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UnusableEntryError(
                f"The entry {kind}/{name} is damaged: {type(error).__name__}: {error}."
            ) from error
        if version != _VERSION:
            raise UnusableEntryError(
                f"The entry {kind}/{name} has format {version!r}, not {_VERSION}."
            )
        if group != self._group or not isinstance(body, dict):
            raise UnusableEntryError(f"The entry {kind}/{name} is one of the group {group!r}.")
        expected = self._signature(kind, name, document)
        if not hmac.compare_digest(str(signature).encode(), expected.encode()):
            raise UnusableEntryError(
                f"The entry {kind}/{name} has a different signature: it was changed, or written "
                "with a different key (firesteel.rest.token)."
            )
        return body

    def all(self, kind: str, prefix: str = "") -> dict[str, dict[str, Any]]:
        """Return the entries of a kind by name. Unusable ones are logged by name, and skipped."""
        found = {}
        for name in self.store.names(kind):
            if not name.startswith(prefix):
                continue
            try:
                body = self.get(kind, name)
            except UnusableEntryError as error:
                _log.error("%s It is skipped.", error)
                continue
            if body is not None:
                found[name] = body
        return found

    def delete(self, kind: str, name: str) -> None:
        """Delete an entry. Raises LeadershipLostError if the term has ended."""
        self.store.delete(kind, name)

    def _signature(self, kind: str, name: str, document: dict[str, Any]) -> str:
        signed = json.dumps([kind, name, document], sort_keys=True).encode()
        return hmac.new(self._key, signed, hashlib.sha256).hexdigest()
