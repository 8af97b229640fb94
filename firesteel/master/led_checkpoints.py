"""The checkpoints of a job with several masters, and the collected records that belong to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from threading import Condition, Lock
from typing import Any, Protocol, runtime_checkable

from firesteel.leader.job_ledger import JobLedger, ResultRanges
from firesteel.master.driver_output import CollectedOutput, Collector


@runtime_checkable
class DurableCollector(Protocol):
    """A collector whose records survive the master.

    Records are stored before the checkpoint that they belong to is complete, and published once the
    job counts it as complete.
    """

    def store(self, records: list[Any]) -> ResultRanges:
        """Write records, in place of those that were stored and not published."""

    def publish(self) -> None:
        """Let the reader see what was stored."""


class LedCheckpoints:
    """The ledger of a job for its checkpoints: enters them together with collected records.

    Args:
        ledger: The entries of the job.
        collected: The records that wait for a checkpoint.
        collectors: Their collectors by node.
        lock: Guards ``collected``.
    """

    def __init__(
        self,
        ledger: JobLedger,
        collected: CollectedOutput,
        collectors: Mapping[int, Collector],
        lock: Condition,
    ) -> None:
        self._ledger = ledger
        self._collected = collected
        self._durable = {
            node: one for node, one in collectors.items() if isinstance(one, DurableCollector)
        }
        self._lock = lock
        # The epoch of the last checkpoint whose records are stored and not published.
        self._stored: int | None = None
        self._storing = Lock()

    def begin(self, checkpoint_id: int) -> None:
        self._ledger.begin(checkpoint_id)

    def complete(self, checkpoint_id: int, location: str, epoch: int) -> None:
        with self._storing:
            self._publish()
            with self._lock:
                waiting = self._collected.until(epoch)
            results = {
                node: collector.store(waiting.get(node, []))
                for node, collector in self._durable.items()
            }
            self._stored = epoch
        self._ledger.complete(checkpoint_id, location, results)

    def publish(self) -> None:
        """Let readers see the records of the last checkpoint, if it counts.

        A job that ends while the checkpoint is being written gives it up, even after it was entered.
        The next master then makes its records again.
        """
        with self._storing:
            self._publish()

    def _publish(self) -> None:
        if self._stored is None or self._collected.confirmed < self._stored:
            return
        self._stored = None
        for collector in self._durable.values():
            collector.publish()

    def keep_only(self, locations: Collection[str]) -> None:
        self._ledger.keep_only(locations)

    def forget(self, location: str) -> None:
        self._ledger.forget(location)

    def discard(self, checkpoint_id: int) -> None:
        self._ledger.discard(checkpoint_id)

    def check(self) -> None:
        self._ledger.check()
