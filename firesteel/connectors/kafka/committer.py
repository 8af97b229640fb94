"""Committer of a KafkaSink: commits transactions that a writer has left open."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.connectors.base import Committer
from firesteel.connectors.kafka.errors import TransactionLostError
from firesteel.connectors.kafka.transactions import KafkaTransactions

__all__ = ["KafkaCommitter"]

_log = logging.getLogger("firesteel")


class KafkaCommitter(Committer):
    """Commits transactions by their ids, producer ids and epochs. A second commit has no effect."""

    def __init__(self, transactions: KafkaTransactions) -> None:
        self._transactions = transactions

    def commit(self, committables: Sequence[Any]) -> None:
        for one in committables:
            self._commit(one)

    def recover(
        self,
        committables: Sequence[Any],
        prefix: str,
        ignored_after: float | None,
        check: Callable[[], None],
    ) -> None:
        """Commit the transactions of a checkpoint, and abort all others of the sink.

        Args:
            committables: The transactions of the checkpoint.
            prefix: The prefix of the sink's transactional ids.
            ignored_after: The age in seconds from which a lost transaction is logged only.
            check: Raises an error if a different master may have begun transactions of the sink.
        """
        for one in committables:
            try:
                self._commit(one)
            except TransactionLostError as error:
                age = time.time() - one["begun_at"]
                if ignored_after is None or age < ignored_after:
                    raise
                _log.error(
                    "The transaction %s was lost %d s after it began. The job continues without its "
                    "records, unless they had been committed before: %s",
                    one["id"],
                    age,
                    error,
                )
        self._transactions.fence_all(re.compile(re.escape(prefix) + r"-\d+-\d+"), check=check)

    def close(self) -> None:
        self._transactions.close()

    def _commit(self, one: dict[str, Any]) -> None:
        self._transactions.commit(one["id"], one["producer_id"], one["epoch"])
