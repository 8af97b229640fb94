"""The state of one operator on its way: sealed in the task, kept by the ledger, restored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from firesteel.master.state_ledger import StateLedger
from firesteel.protocol.messages import SubtaskAck, VertexMetrics
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.changelog import Segment, SegmentStore

_NODE = 7


class SubtaskState:
    def __init__(
        self,
        create: Callable[[], KeyedStateBackend],
        directory: Path | str | None = None,
        inline_threshold: int = 0,
    ) -> None:
        self._create = create
        self.store = SegmentStore(None if directory is None else str(directory), inline_threshold)
        self.ledger = StateLedger()
        self.backend = create()
        self.epoch = 0
        self._unneeded: frozenset[str] = frozenset()
        self._retained: list[tuple[Segment, ...]] = []

    def seal(self) -> tuple[Segment, ...]:
        """An epoch ends and its ack arrives."""
        self.epoch += 1
        segments = self.backend.seal(self.epoch, self.store)
        before = self.ledger.files()
        self.ledger.record(
            SubtaskAck(
                vertex=1,
                subtask=0,
                segments={_NODE: segments} if segments else {},
                whole={},
                gate=None,
                sources={},
                committables={},
                finished=False,
                watermark=0,
                metrics=VertexMetrics(),
                user_metrics={},
            )
        )
        self._unneeded |= before - self.ledger.files()
        self._delete_unneeded()
        return segments

    def retain(self) -> tuple[Segment, ...]:
        """Keep the files of the current segments, as a checkpoint does."""
        segments = self.segments()
        self._retained.append(segments)
        return segments

    def release(self) -> None:
        """Give up the oldest retained segments."""
        del self._retained[0]
        self._delete_unneeded()

    def _delete_unneeded(self) -> None:
        """Delete files as the driver does, once no checkpoint needs them."""
        kept = {
            path for segments in self._retained for segment in segments for path in segment.paths()
        }
        for path in self._unneeded - kept:
            Path(path).unlink()
        self._unneeded &= kept

    def end_epoch(self) -> tuple[Segment, ...]:
        """Sealed, and confirmed by the epoch after it."""
        segments = self.seal()
        self.backend.confirm()
        return segments

    def wait_for_snapshot(self) -> None:
        """Wait until the snapshot in the background, if there is one, can be handed over."""
        if getattr(self.backend, "_planned", None) is not None:
            self.end_epoch()  # which begins it
        for background in (self.backend._snapshot, self.backend._merge):
            assert background is None or background.wait(60)

    def segments(self) -> tuple[Segment, ...]:
        handle = self.ledger.handle(1, 0).operators.get(_NODE)
        return () if handle is None else handle.segments

    def crash(self, *, same_process: bool = False) -> None:
        if not same_process:
            self.backend.close()
            self.backend = self._create()
        self.backend.restore(self.segments(), self.store)
