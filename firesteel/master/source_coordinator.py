"""One source as the job master sees it: splits, their readers, and when to look for more.

It is pure. The enumerator of the source lives at the edge (``split_enumerators``) and reports here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.checkpoint.payload import Payload, payload_of_split, split_of_payload
from firesteel.connectors.base import Boundedness, Source, SourceSplit
from firesteel.errors import FiresteelError
from firesteel.master.decisions import AskPending, DiscoverSplits, SourceDecision
from firesteel.protocol.messages import SourceStatus

# A source without splits still has an epoch this often: idle slot hosts end by themselves, and
# sinks close files by the clock.
_IDLE_SECONDS = 5.0

# An enumerator that has found nothing is not asked again sooner than this.
_LEAST_DISCOVERY_SECONDS = 0.1
_LEAST_WAIT_SECONDS = 0.001

# The first epoch waits this long for the first splits. Most enumerators answer within it, which
# saves an epoch that reads nothing.
_FIRST_DISCOVERY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class EnumeratorReport:
    """An enumerator after a call: its new splits, and everything the master asks it between calls.

    ``state`` is a snapshot that agrees with the splits reported so far. A snapshot that could not be
    taken is an error of the checkpoint that needs it (``state_error``).
    """

    splits: tuple[SourceSplit, ...] = ()
    complete: bool = True
    next_discovery: float = 1.0
    state: Any = None
    state_error: FiresteelError | None = None
    # False for enumerators that never know whether something is pending.
    knows_pending: bool = False


class SourceCoordinator:
    def __init__(
        self,
        node_id: int,
        source: Source,
        parallelism: int,
        created: EnumeratorReport,
        restored: Payload | None = None,
        assigned: Sequence[int] = (),
    ) -> None:
        """Begin with a new enumerator.

        ``restored`` is the result of ``checkpoint``; ``assigned`` is the number of splits that each
        reader has in that checkpoint.
        """
        self.node_id = node_id
        self.parallelism = parallelism
        # Readers ask for splits that they read one after the other. Splits that are read side by
        # side, or that may never end, are all handed out at once.
        self._is_pulled = not source.side_by_side and (
            source.side_by_side is False or source.get_boundedness() is Boundedness.BOUNDED
        )
        self._in_time_order = source.in_time_order
        self._report = created
        self._unassigned: deque[SourceSplit] = deque()
        if restored is not None:
            self._unassigned.extend(map(_split, restored.load()["unassigned"]))
        self._statuses: list[SourceStatus | None] = [None] * parallelism
        self._assigned: list[int] = list(assigned) or [0] * parallelism
        # The number of splits that each reader asks for. A reader that begins without splits asks.
        self._wanted: list[int] = [0 if splits else 1 for splits in self._assigned]
        # Splits that were still to be read at checkpoints that are not complete yet.
        self._unread: dict[int, list[SourceSplit]] = {}
        # Discovery: since when it is under way, and when the next one is due.
        self._first_asked_at: float | None = None
        self._is_asked = False
        self._discovered = False
        self._due_at = float("-inf")
        # The enumerator's answer for the present statuses; None while it is unknown.
        self._pending: bool | None = None
        self._pending_asked = False

    # Discovery

    def decide(self, now: float) -> list[SourceDecision]:
        """Return the questions for the enumerator that are due now, each of them once."""
        decisions: list[SourceDecision] = []
        if not self._is_asked and not self._searches_no_more() and now >= self._due_at:
            self._is_asked = True
            if self._first_asked_at is None:
                self._first_asked_at = now
            all_read = not self._unassigned and not any(self._assigned)
            decisions.append(DiscoverSplits(self.node_id, all_read))
        if self._report.knows_pending and not self._pending_asked and not self._is_due():
            splits = self._waiting_splits()
            if splits:
                self._pending_asked = True
                decisions.append(AskPending(self.node_id, tuple(splits)))
        return decisions

    def discovered(self, report: EnumeratorReport, now: float) -> None:
        self._report = report
        self._is_asked = False
        self._discovered = True
        self._unassigned.extend(report.splits)
        least = 0.0 if report.splits else _LEAST_DISCOVERY_SECONDS
        self._due_at = now + max(report.next_discovery, least)

    def reported(self, report: EnumeratorReport) -> None:
        """The enumerator has answered something that finds no splits."""
        self._report = report

    def pending_known(self, splits: Sequence[SourceSplit], pending: bool) -> None:
        """Take the answer to AskPending, unless readers have read more in the meantime."""
        if tuple(splits) == tuple(self._waiting_splits()):
            self._pending = pending

    def until_discovery(self, now: float) -> float | None:
        """Return the seconds until the next discovery, always more than 0, or None.

        It is None if there is no next discovery, or while one is under way: its end is an event.
        """
        if self._is_asked or self._searches_no_more():
            return None
        return max(self._due_at - now, _LEAST_WAIT_SECONDS)

    def until_first_answer(self, now: float) -> float:
        """Return the seconds that the first epoch may still wait for the first splits."""
        if self._discovered or self._first_asked_at is None:
            return 0.0
        return max(0.0, self._first_asked_at + _FIRST_DISCOVERY_SECONDS - now)

    def _searches_no_more(self) -> bool:
        return self.finished or self.has_found_everything

    @property
    def has_found_everything(self) -> bool:
        return self._discovered and self._report.complete

    # Assignment

    def is_complete(self) -> bool:
        """Return True if readers that run out of splits have reached the end of the source."""
        return self.has_found_everything and not self._unassigned

    def holds_time(self) -> bool:
        """Return True if the watermark of the source waits for splits that no reader has yet."""
        return bool(self._unassigned) and not self._in_time_order

    def assign(self, *, everything: bool = False) -> dict[int, tuple[SourceSplit, ...]]:
        """Return new splits for the next epoch by subtask: to the reader with the fewest first."""
        assignment: dict[int, list[SourceSplit]] = {}
        places = [len(self._unassigned)] * self.parallelism
        if self._is_pulled and not everything:
            # A reader of small files asks for many. It gets at most half of its fair share, so
            # that enough is left for the others if the next files are large.
            share = -(-len(self._unassigned) // (2 * self.parallelism))
            places = [min(wanted, share) for wanted in self._wanted]
        while self._unassigned and any(places):
            subtask = min(
                (index for index, free in enumerate(places) if free),
                key=lambda index: self._assigned[index],
            )
            assignment.setdefault(subtask, []).append(self._unassigned.popleft())
            self._assigned[subtask] += 1
            places[subtask] -= 1
            self._wanted[subtask] = 0
        return {subtask: tuple(splits) for subtask, splits in assignment.items()}

    def update(self, subtask: int, status: SourceStatus) -> None:
        self._statuses[subtask] = status
        self._assigned[subtask] = len(status.splits)
        self._wanted[subtask] = status.wanted
        self._pending = None
        self._pending_asked = False

    @property
    def finished(self) -> bool:
        return all(status is not None and status.finished for status in self._statuses)

    # The next epoch

    def delay(self, until_aligned: float = 0.0) -> float | None:
        """Return the seconds until the next epoch is useful, or None if no data is expected.

        Readers that are ahead of their alignment group wait ``until_aligned``. Readers without
        splits wait for discovery.
        """
        if self.finished:
            return None
        if self._is_due() or self._pending:
            return 0.0
        statuses = [s for s in self._statuses if s is not None and not s.ahead]
        delays = [status.delay for status in statuses if status.splits and not status.finished]
        if any(status is not None and (status.ahead or status.paused) for status in self._statuses):
            delays.append(until_aligned)
        return min(delays, default=_IDLE_SECONDS)

    def _is_due(self) -> bool:
        if any(
            status is None or (status.available and not status.ahead) for status in self._statuses
        ):
            return True
        if self._unassigned and (any(self._wanted) or not self._is_pulled):
            return True
        # Readers without splits have to be told that no more splits will come.
        return self.is_complete() and any(
            status is not None and not status.splits and not status.finished
            for status in self._statuses
        )

    def _waiting_splits(self) -> list[SourceSplit]:
        """Return the splits of readers that found nothing to read."""
        return [
            split
            for status in self._statuses
            if status is not None and not status.ahead
            for split in status.splits
            if split.split_id not in status.paused
        ]

    # Checkpoints

    def checkpoint(self, checkpoint_id: int) -> Payload:
        """Return the driver's part of a checkpoint: JSON, if all splits are."""
        if self._report.state_error is not None:
            raise self._report.state_error
        read = [split for status in self._statuses if status is not None for split in status.splits]
        self._unread[checkpoint_id] = [*read, *self._unassigned]
        splits = [payload_of_split(split) for split in self._unassigned]
        is_json = not any(payload.needs_code for payload in splits)
        return Payload.of(
            {
                "enumerator": self._report.state,
                "unassigned": [s.json for s in splits] if is_json else [*self._unassigned],
            }
        )

    def checkpoint_complete(self, checkpoint_id: int) -> tuple[SourceSplit, ...] | None:
        """Return the splits that were still to be read at the checkpoint; None if unknown."""
        unread = self._unread.get(checkpoint_id)
        # Earlier checkpoints do not matter any more, and savepoints complete without notice.
        self._unread = {key: kept for key, kept in self._unread.items() if key > checkpoint_id}
        return None if unread is None else tuple(unread)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._unread.pop(checkpoint_id, None)


def enumerator_state(restored: Payload | None) -> Any:
    """Return the state for ``Source.create_enumerator`` from the result of ``checkpoint``."""
    return None if restored is None else restored.load()["enumerator"]


def _split(kept: Any) -> SourceSplit:
    return kept if isinstance(kept, SourceSplit) else split_of_payload(Payload(json=kept))
