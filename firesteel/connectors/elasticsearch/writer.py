"""Writer of documents: collects actions, and sends them in bulk requests."""

from __future__ import annotations

import logging
import time
from typing import Any

from firesteel.connectors.base import SinkWriter, WriteContext
from firesteel.connectors.elasticsearch.client import BulkClient, ElasticsearchUnavailableError
from firesteel.connectors.elasticsearch.emitter import Action, ActionEncoder
from firesteel.connectors.elasticsearch.settings import BulkSettings
from firesteel.errors import FiresteelError, shorten
from firesteel.usercode.failures import explaining

__all__ = ["DocumentRejectedError", "DocumentWriter"]

_log = logging.getLogger("firesteel")

_TOO_MANY_REQUESTS = 429


class DocumentRejectedError(FiresteelError, ValueError):
    """Elasticsearch does not take a document."""

    def __init__(self, index: str, reason: str, action: str, count: int) -> None:
        others = f" {count - 1} more documents failed." if count > 1 else ""
        super().__init__(
            f"Elasticsearch refused a document for the index {index!r}: {reason}. The action was "
            f"{action}.{others}"
        )
        self.index = index
        self.reason = reason
        self.action = action
        self.count = count


class DocumentWriter(SinkWriter):
    """Writes documents, at least once or without a guarantee."""

    def __init__(
        self, encoder: ActionEncoder, client: BulkClient, bulk: BulkSettings, *, flushes: bool
    ) -> None:
        """Create a writer.

        Args:
            encoder: Makes actions of records.
            client: Sends the requests.
            bulk: The size of requests, and their repetitions.
            flushes: True if all documents have to be written at the end of an epoch.
        """
        self._encoder = encoder
        self._client = client
        self._bulk = bulk
        self._flushes = flushes
        self._interval = None if bulk.interval_millis <= 0 else bulk.interval_millis / 1000
        self._waiting: list[Action] = []
        self._bytes = 0
        # When the oldest action that waits has come.
        self._waits_since: float | None = None

    def write(self, value: Any, context: WriteContext) -> None:
        self.write_batch([value], None, context)

    def write_batch(
        self, values: list[Any], timestamps: list[int] | None, context: WriteContext
    ) -> None:
        iterator = iter(values)
        with explaining([self._encoder.actions], values, iterator):
            actions = self._encoder.actions(iterator)
        most, largest = self._bulk.most_actions, self._bulk.max_bytes
        for action in actions:
            size = len(action.text)
            if self._waiting and self._bytes + size > largest:
                self._send_waiting()
            self._waiting.append(action)
            self._bytes += size
            if len(self._waiting) >= most:
                self._send_waiting()
        if self._interval is not None and self._waiting:
            now = time.monotonic()
            if self._waits_since is None:
                self._waits_since = now
            elif now - self._waits_since >= self._interval:
                self._send_waiting()

    def flush(self, end_of_input: bool) -> None:
        if self._flushes or end_of_input or self._is_overdue():
            self._send_waiting()

    def next_flush_delay(self) -> float | None:
        return self._interval

    def close(self) -> None:
        self._client.close()

    def _is_overdue(self) -> bool:
        since, interval = self._waits_since, self._interval
        return since is not None and interval is not None and time.monotonic() - since >= interval

    def _send_waiting(self) -> None:
        actions, self._waiting, self._bytes, self._waits_since = self._waiting, [], 0, None
        attempt = 0
        while actions:
            is_last = attempt >= self._bulk.retries
            try:
                answers = self._client.send(b"".join([action.text for action in actions]))
            except ElasticsearchUnavailableError as error:
                if is_last:
                    raise
                reason = error.reason
            else:
                actions = _rejected(actions, answers, is_last=is_last)
                reason = f"it rejected {len(actions)} actions"
            if actions:
                pause = self._bulk.pause(attempt)
                _log.warning(
                    "Elasticsearch at %s: %s. The request is repeated in %.1f s.",
                    self._client.address,
                    reason,
                    pause,
                )
                time.sleep(pause)
            attempt += 1


def _rejected(
    actions: list[Action], answers: list[dict[str, Any]], *, is_last: bool
) -> list[Action]:
    """Return the actions to send again.

    Elasticsearch rejects actions if a shard is overloaded. Later actions of the same request may
    have changed the same document, so they are repeated, too.

    Raises:
        DocumentRejectedError: An action failed, and a repetition would fail, too.
    """
    failed = [
        (action, answer)
        for action, answer in zip(actions, answers, strict=True)
        if "error" in answer and (is_last or answer.get("status") != _TOO_MANY_REQUESTS)
    ]
    if failed:
        action, answer = failed[0]
        raise DocumentRejectedError(
            action.index, _reason(answer), shorten(action.text.decode()), len(failed)
        )
    again: list[Action] = []
    documents: set[tuple[str, str | None]] = set()
    for action, answer in zip(actions, answers, strict=True):
        if "error" in answer:
            again.append(action)
            if action.document_id is not None:
                documents.add(action.target)
        elif action.target in documents:
            again.append(action)
    return again


def _reason(answer: dict[str, Any]) -> str:
    error = answer["error"]
    if not isinstance(error, dict):
        return f"{error} (status {answer.get('status')})"
    text = f"{error.get('type')}: {error.get('reason')}"
    if cause := (error.get("caused_by") or {}).get("reason"):
        text += f": {cause}"
    return f"{text} (status {answer.get('status')})"
