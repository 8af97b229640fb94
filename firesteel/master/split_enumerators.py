"""The enumerators of the sources, at the edge: each has a thread of its own.

Enumerators list directories and ask brokers. All calls of one enumerator are made in its thread,
so that it needs no locks and a slow one holds up nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future, wait
from functools import partial
from typing import Any

from firesteel.connectors.base import Source, SourceSplit, SplitEnumerator
from firesteel.errors import FiresteelError, UserFunctionError
from firesteel.graph.operator_specs import SourceSpec
from firesteel.graph.stream_graph import StreamNode
from firesteel.master.decisions import AskPending, CommitPositions, DiscoverSplits, SourceDecision
from firesteel.master.edge import log_failure
from firesteel.master.job_master import Event, Raised
from firesteel.master.source_coordinator import EnumeratorReport
from firesteel.usercode.failures import called

_log = logging.getLogger("firesteel")

# A job that ends waits this long for its enumerators to commit the last positions, unless they are
# busy with something else.
_CLOSE_SECONDS = 10.0
_BUSY_CLOSE_SECONDS = 0.5


class EnumeratorOfSource:
    """The enumerator of one source. Its methods run in its thread.

    Errors name the operator and the job.
    """

    def __init__(self, operator: str, job: str, source: Source, parallelism: int) -> None:
        self.operator = operator
        self._job = job
        self.source = source
        self._parallelism = parallelism
        self._enumerator: SplitEnumerator | None = None

    def create(self, state: Any) -> EnumeratorReport:
        self._enumerator = self._call(self.source.create_enumerator, self._parallelism, state)
        return self._report(self._created())

    def discover(self, *, all_read: bool = False) -> EnumeratorReport:
        enumerator = self._created()
        if all_read:
            self._call(enumerator.all_splits_read)
        return self._report(enumerator, self._call(enumerator.discover_splits))

    def commit(self, splits: tuple[SourceSplit, ...]) -> EnumeratorReport:
        enumerator = self._created()
        self._call(enumerator.checkpoint_complete, splits)
        return self._report(enumerator)

    def has_pending(self, splits: tuple[SourceSplit, ...]) -> bool:
        return bool(self._call(self._created().has_pending, splits))

    def close(self) -> None:
        enumerator, self._enumerator = self._enumerator, None
        if enumerator is not None:
            self._call(enumerator.close)

    def _created(self) -> SplitEnumerator:
        assert self._enumerator is not None
        return self._enumerator

    def _report(
        self, enumerator: SplitEnumerator, splits: Iterable[SourceSplit] = ()
    ) -> EnumeratorReport:
        state, state_error = None, None
        try:
            state = self._call(enumerator.snapshot_state)
        except FiresteelError as error:
            # Checkpoints raise it. A later report may succeed before the next checkpoint.
            _log.warning("the enumerator of '%s' has no state: %s", self.operator, error)
            state_error = error
        complete = bool(self._call(enumerator.is_complete))
        return EnumeratorReport(
            tuple(splits),
            complete,
            0.0 if complete else self._call(enumerator.next_discovery_delay),
            state,
            state_error,
            type(enumerator).has_pending is not SplitEnumerator.has_pending,
        )

    def _call(self, method: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return called(self.operator, method, *arguments)
        except UserFunctionError as error:
            error.job = error.job or self._job
            raise


class SplitEnumerators:
    """All enumerators of one attempt. ``post`` takes the events that follow from their results."""

    def __init__(
        self,
        nodes: Iterable[StreamNode],
        job_name: str,
        io_thread: Callable[[str], Executor],
        post: Callable[[Event], None],
    ) -> None:
        self._post = post
        self._enumerators: dict[int, EnumeratorOfSource] = {}
        self._threads: dict[int, Executor] = {}
        # Nodes whose enumerators are being created, or discover splits.
        self._busy: set[int] = set()
        self._is_closed = False
        # Nodes whose enumerators were still busy when the attempt had waited long enough.
        self._left: set[int] = set()
        for node in nodes:
            if isinstance(node.spec, SourceSpec):
                self._enumerators[node.id] = EnumeratorOfSource(
                    node.name, job_name, node.spec.source, node.parallelism
                )
                self._threads[node.id] = io_thread(f"firesteel-source-{node.name}")

    def create(self, states: Mapping[int, Any]) -> dict[int, Future[EnumeratorReport]]:
        """Create all enumerators side by side, from their ``states``."""
        created = {}
        for node, enumerator in self._enumerators.items():
            create = partial(enumerator.create, states.get(node))
            created[node] = self._threads[node].submit(self._while_busy, node, create)
        return created

    def source(self, node: int) -> Source:
        return self._enumerators[node].source

    def carry_out(self, decision: SourceDecision) -> None:
        """Ask an enumerator, in its thread. Once they are closed nothing is asked any more."""
        if self._is_closed:
            return
        node = decision.node
        enumerator = self._enumerators[node]
        match decision:
            case DiscoverSplits(all_read=all_read):
                discover = partial(enumerator.discover, all_read=all_read)
                self._submit(node, lambda: self._discover(node, discover))
            case CommitPositions(splits=splits):
                self._submit(node, lambda: _positions_committed(node, enumerator.commit(splits)))
            case AskPending(splits=splits):
                self._submit(
                    node, lambda: _pending_known(node, splits, enumerator.has_pending(splits))
                )

    def _discover(self, node: int, discover: Callable[[], EnumeratorReport]) -> Event:
        report = self._while_busy(node, discover)
        return lambda master, now: master.splits_discovered(node, report, now)

    def _while_busy(self, node: int, work: Callable[[], EnumeratorReport]) -> EnumeratorReport:
        self._busy.add(node)
        try:
            return work()
        finally:
            self._busy.discard(node)

    def _submit(self, node: int, work: Callable[[], Event]) -> None:
        """Post the event that ``work`` returns, or the failure of the job."""

        def run() -> None:
            if node in self._left:
                # A newer attempt may have committed later positions by now.
                return
            try:
                event = work()
            except BaseException as error:  # noqa: BLE001 - code of connectors may raise anything
                self._post(Raised(error))
            else:
                self._post(event)

        self._threads[node].submit(run).add_done_callback(log_failure)

    def close(self) -> None:
        """Close all enumerators. One that hangs is left to its thread, which only closes it."""
        self._is_closed = True
        closing: dict[Future[None], int] = {}
        busy: set[Future[None]] = set()
        for node, enumerator in self._enumerators.items():
            closed = self._threads[node].submit(enumerator.close)
            closing[closed] = node
            if node in self._busy:
                busy.add(closed)
            self._threads[node].shutdown(wait=False)
        wait([closed for closed in closing if closed not in busy], _CLOSE_SECONDS)
        wait(busy, _BUSY_CLOSE_SECONDS)
        for closed, node in closing.items():
            if not closed.done():
                self._left.add(node)
                _log.warning(
                    "the enumerator of '%s' is still busy; it will be closed when it returns",
                    self._enumerators[node].operator,
                )
            closed.add_done_callback(log_failure)


def _positions_committed(node: int, report: EnumeratorReport) -> Event:
    return lambda master, _: master.positions_committed(node, report)


def _pending_known(node: int, splits: tuple[SourceSplit, ...], pending: bool) -> Event:
    return lambda master, _: master.pending_known(node, splits, pending)
