"""One source as the driver sees it: its enumerator, and which reader has which splits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from firesteel.checkpoint.payload import Payload, payload_of_split, split_of_payload
from firesteel.connectors.base import Boundedness, Source, SourceSplit, SplitEnumerator
from firesteel.errors import UserFunctionError
from firesteel.protocol.messages import SourceStatus
from firesteel.usercode.failures import called

# A reader of a bounded source gets further splits when it has fewer than this, so that no reader
# sits on a long list while others are done. Splits of unbounded sources may never end, and those
# that are read side by side share the watermark, so they are all handed out at once.
_SPLITS_AHEAD = 4

# A source without splits has an epoch now and then: slot hosts without work end by themselves, and
# sinks close files by the clock.
_IDLE_SECONDS = 5.0

# An enumerator is not asked more often than this, nor waited for shorter than that.
_LEAST_DISCOVERY_SECONDS = 0.1
_LEAST_WAIT_SECONDS = 0.001


class SourceCoordinator:
    def __init__(
        self,
        node_id: int,
        source: Source,
        parallelism: int,
        restored: Payload | None = None,
        assigned: Sequence[int] = (),
        *,
        operator: str = "",
        job: str = "",
    ) -> None:
        """``restored`` is a ``checkpoint``; ``assigned`` says how many splits readers have then.

        What the source's methods raise names ``operator`` and ``job``.
        """
        self.node_id = node_id
        self._operator, self._job = operator, job
        self.parallelism = parallelism
        state = None if restored is None else restored.load()
        self._enumerator: SplitEnumerator = self._call(
            source.create_enumerator, parallelism, None if state is None else state["enumerator"]
        )
        bounded = source.get_boundedness() is Boundedness.BOUNDED
        self._holds_back = bounded and not source.side_by_side
        self._discovered_at: float | None = None
        self._unassigned: deque[SourceSplit] = deque()
        if state is not None:
            self._unassigned.extend(map(_split, state["unassigned"]))
        self._statuses: list[SourceStatus | None] = [None] * parallelism
        self._assigned: list[int] = list(assigned) or [0] * parallelism
        # What was still to be read at checkpoints that are not complete yet.
        self._unread: dict[int, list[SourceSplit]] = {}

    def discover(self, now: float) -> None:
        """Look for new splits, as often as the enumerator wants to."""
        if self._discovered_at is None or (
            not self._call(self._enumerator.is_complete)
            and now - self._discovered_at >= self._call(self._enumerator.next_discovery_delay)
        ):
            self._look(now)

    def until_discovery(self, now: float) -> float | None:
        """Seconds until ``discover`` will look again, always more than 0; None if it never will."""
        found_at = self._discovered_at
        if found_at is None or self.finished or self._call(self._enumerator.is_complete):
            return None
        delay: float = self._call(self._enumerator.next_discovery_delay)
        due_at = found_at + max(delay, _LEAST_DISCOVERY_SECONDS)
        return max(due_at - now, _LEAST_WAIT_SECONDS)

    def look(self) -> float | None:
        """Look for new splits now; seconds until it is worth it again, None if all are found."""
        self._look(0.0)
        if self._call(self._enumerator.is_complete):
            return None
        delay: float = self._call(self._enumerator.next_discovery_delay)
        return delay

    def _look(self, now: float) -> None:
        self._discovered_at = now
        self._unassigned.extend(self._call(self._enumerator.discover_splits))

    def is_complete(self) -> bool:
        """Whether readers that run out of splits have reached the end of the source."""
        return (
            self._discovered_at is not None
            and not self._unassigned
            and bool(self._call(self._enumerator.is_complete))
        )

    def assign(self, *, everything: bool = False) -> dict[int, tuple[SourceSplit, ...]]:
        """Splits for the next epoch by subtask: to the reader with the fewest first."""
        assignment: dict[int, list[SourceSplit]] = {}
        limit = len(self._unassigned) + max(self._assigned, default=0)
        if self._holds_back and not everything:
            limit = _SPLITS_AHEAD
        while self._unassigned:
            subtask = min(range(self.parallelism), key=lambda index: self._assigned[index])
            if self._assigned[subtask] >= limit:
                break
            assignment.setdefault(subtask, []).append(self._unassigned.popleft())
            self._assigned[subtask] += 1
        return {subtask: tuple(splits) for subtask, splits in assignment.items()}

    def update(self, subtask: int, status: SourceStatus) -> None:
        self._statuses[subtask] = status
        self._assigned[subtask] = len(status.splits)

    @property
    def finished(self) -> bool:
        return all(status is not None and status.finished for status in self._statuses)

    def delay(self, until_aligned: float = 0.0) -> float | None:
        """Seconds until the next epoch is worth it; 0 at once, None if nothing is known to come.

        Readers that are ahead of their alignment group wait ``until_aligned``. Those without splits
        wait for ``discover`` to find some.
        """
        if self.finished:
            return None
        if any(
            status is None or (status.available and not status.ahead) for status in self._statuses
        ):
            return 0.0
        if self._unassigned and (not self._holds_back or min(self._assigned) < _SPLITS_AHEAD):
            return 0.0
        if self.is_complete() and any(
            status is not None and not status.splits and not status.finished
            for status in self._statuses
        ):
            # These readers only have to be told that no more splits will come.
            return 0.0
        statuses = [s for s in self._statuses if s is not None and not s.ahead]
        splits = [
            split
            for status in statuses
            for split in status.splits
            if split.split_id not in status.paused
        ]
        if splits and self._call(self._enumerator.has_pending, splits):
            return 0.0
        delays = [status.delay for status in statuses if status.splits and not status.finished]
        if any(status is not None and (status.ahead or status.paused) for status in self._statuses):
            delays.append(until_aligned)
        return min(delays, default=_IDLE_SECONDS)

    def checkpoint(self, checkpoint_id: int) -> Payload:
        """What a checkpoint keeps of the driver's side: JSON, if all splits are."""
        read = [split for status in self._statuses if status is not None for split in status.splits]
        self._unread[checkpoint_id] = [*read, *self._unassigned]
        splits = [payload_of_split(split) for split in self._unassigned]
        is_json = not any(payload.needs_code for payload in splits)
        return Payload.of(
            {
                "enumerator": self._call(self._enumerator.snapshot_state),
                "unassigned": [s.json for s in splits] if is_json else [*self._unassigned],
            }
        )

    def checkpoint_complete(self, checkpoint_id: int) -> None:
        unread = self._unread.get(checkpoint_id)
        # Those before it do not matter any more, and savepoints complete without a word.
        self._unread = {key: kept for key, kept in self._unread.items() if key > checkpoint_id}
        if unread is not None:
            self._call(self._enumerator.checkpoint_complete, unread)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._unread.pop(checkpoint_id, None)

    def close(self) -> None:
        self._call(self._enumerator.close)

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return called(self._operator, method, *arguments)
        except UserFunctionError as error:
            error.job = error.job or self._job
            raise


def _split(kept: Any) -> SourceSplit:
    return kept if isinstance(kept, SourceSplit) else split_of_payload(Payload(json=kept))


# So long may a cancellation go unnoticed.
_WAIT_SECONDS = 0.1


def discover_everything(
    sources: Iterable[SourceCoordinator],
    wait: Callable[[float], object],
    is_canceled: Callable[[], bool],
) -> bool:
    """Ask every enumerator, as often as it wants to be asked, until it is complete.

    ``wait`` lets seconds pass. Whether everything was found: False if the job was canceled first.
    """
    elapsed = 0.0
    due_at = dict.fromkeys(sources, 0.0)
    while due_at:
        source = min(due_at, key=lambda one: due_at[one])
        while (left := due_at[source] - elapsed) > 0.0 and not is_canceled():
            wait(step := min(left, _WAIT_SECONDS))
            # Never less than what is left because of rounding.
            elapsed = due_at[source] if step == left else elapsed + step
        if is_canceled():
            return False
        delay = source.look()
        if delay is None:
            del due_at[source]
        else:
            due_at[source] = elapsed + max(0.0, delay)
    return True
