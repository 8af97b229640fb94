"""Watermark alignment: the sources of a group that are far ahead wait for the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.common.watermark_strategy import WatermarkAlignment
from firesteel.graph.operator_specs import SourceSpec
from firesteel.graph.stream_graph import StreamNode
from firesteel.protocol.messages import SourceStatus


@dataclass(slots=True)
class _Group:
    """Watermarks by (node, subtask), and the limit that was decided at ``decided_at``."""

    drift: int
    interval: float
    watermarks: dict[tuple[int, int], int] = field(default_factory=dict)
    limit: int = MIN_WATERMARK
    decided_at: float | None = None


class WatermarkAligner:
    """The alignment groups of a job. Idle and finished sources hold no group up."""

    def __init__(self, nodes: Mapping[int, StreamNode]) -> None:
        self._groups: dict[str, _Group] = {}
        self._group_of: dict[int, _Group] = {}
        for node in nodes.values():
            alignment = _alignment(node)
            if alignment is None:
                continue
            drift = alignment.max_allowed_watermark_drift.to_millis()
            interval = alignment.update_interval.to_millis() / 1000
            group = self._groups.setdefault(alignment.watermark_group, _Group(drift, interval))
            # The settings of sources in a group may differ. The strictest count.
            group.drift = min(group.drift, drift)
            group.interval = min(group.interval, interval)
            self._group_of[node.id] = group
            for subtask in range(node.parallelism):
                group.watermarks[node.id, subtask] = MIN_WATERMARK

    def update(self, node: int, subtask: int, status: SourceStatus) -> None:
        group = self._group_of.get(node)
        if group is not None:
            is_out = status.finished or status.idle
            group.watermarks[node, subtask] = MAX_WATERMARK if is_out else status.watermark

    def limits(self, now: float) -> dict[int, int]:
        """Return the watermark that each aligned source may reach in the next epoch."""
        for group in self._groups.values():
            if group.decided_at is None or now - group.decided_at >= group.interval:
                group.decided_at = now
                group.limit = min(min(group.watermarks.values()) + group.drift, MAX_WATERMARK)
        return {node: group.limit for node, group in self._group_of.items()}

    def delay(self, node: int, now: float) -> float:
        """Return the seconds until the limit of a source that is ahead may change."""
        group = self._group_of.get(node)
        if group is None or group.decided_at is None:
            return 0.0
        return max(0.0, group.decided_at + group.interval - now)


def _alignment(node: StreamNode) -> WatermarkAlignment | None:
    spec = node.spec
    if not isinstance(spec, SourceSpec) or spec.watermark_strategy is None:
        return None
    alignment: WatermarkAlignment | None = spec.watermark_strategy.alignment
    return alignment
