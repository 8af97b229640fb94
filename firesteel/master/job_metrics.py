"""Metrics of a job: the work of its subtasks, from the acks of epochs and the reports of live slots."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from firesteel.checkpoint.rules.tasks import TaskTiming
from firesteel.common.constants import MAX_WATERMARK, MIN_WATERMARK
from firesteel.graph.job_graph import JobGraph, JobVertex
from firesteel.graph.levels import Levels
from firesteel.metrics import OperatorSnapshots, counter_totals, job_report
from firesteel.protocol.messages import SlotAck, SubtaskAck, VertexMetrics
from firesteel.protocol.reports import SlotReport, SubtaskFigures

# Rates are those of about the last ten seconds.
_WINDOW_SECONDS = 10.0
# Samples that are closer than this replace each other.
_SAMPLE_SECONDS = 0.5
_SUMS = (
    "records_in",
    "records_out",
    "bytes_in",
    "bytes_out",
    "busy_seconds",
    "idle_seconds",
    "back_pressured_seconds",
)
_FIRED_TIMERS = "numFiredTimers"
Sum = str | tuple[int, str]
"""A sum of a subtask, or of an operator by node and Flink's name."""

Key = tuple[int, int]
"""A vertex and a subtask."""


@dataclass(slots=True)
class _Series:
    """The figures of a subtask, and their past for rates. Times are epoch seconds."""

    figures: SubtaskFigures
    # Pairs of the age of the slot, in seconds, and the sums at that age.
    samples: deque[tuple[float, dict[Sum, float]]] = field(default_factory=deque)
    is_live: bool = False
    running_at: float | None = None
    finished_at: float | None = None

    def sample(self, age: float) -> None:
        samples = self.samples
        sums: dict[Sum, float] = {name: getattr(self.figures, name) for name in _SUMS}
        for node, found in self.figures.operators.items():
            if _FIRED_TIMERS in found:
                sums[node, _FIRED_TIMERS] = found[_FIRED_TIMERS]
        for node, counts in self.figures.records.items():
            sums |= {(node, name): count for name, count in counts.items()}
        if samples and age < samples[-1][0]:
            # The slot has begun again.
            samples.clear()
        if len(samples) > 1 and age - samples[-2][0] < _SAMPLE_SECONDS:
            samples.pop()
        samples.append((age, sums))
        while len(samples) > 2 and age - samples[1][0] >= _WINDOW_SECONDS:
            samples.popleft()

    def rates(self) -> dict[Sum, float]:
        """Return the increase per second of each sum."""
        if self.finished_at is not None or len(self.samples) < 2:
            return dict.fromkeys(_SUMS, 0.0)
        (began, before), (ended, now) = self.samples[0], self.samples[-1]
        span = max(ended - began, 1e-9)
        return {
            name: max(0.0, (after - before.get(name, 0.0)) / span) for name, after in now.items()
        }


class JobMetrics:
    """Figures by vertex and subtask of one attempt, and the user's metrics."""

    def __init__(
        self,
        operator_names: Mapping[int, str],
        levels: Levels,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``operator_names`` are by node, in the order of the program."""
        self._operator_names = operator_names
        self._graph: JobGraph = levels.job_graph
        self._level_of = levels.level_of
        self._clock = clock
        self._began_at = clock()
        self._series: dict[Key, _Series] = {}
        #: The work in epochs that have ended.
        self.vertices: dict[Key, VertexMetrics] = {}
        self.hosts: dict[Key, str] = {}
        self._user: dict[Key, OperatorSnapshots] = {}
        self._after = _vertices_after(self._graph)
        self._epoch_ended_at: float | None = None
        self._age = 0.0
        self.epochs = 0
        self.last_epoch_seconds = 0.0
        self.longest_epoch_seconds = 0.0
        # Parts of the last epoch: the slowest slot, its end, and the rest.
        self.epoch_parts: dict[str, float] = {}

    # Reports of live slots

    def take_report(self, report: SlotReport) -> None:
        for figures in report.subtasks:
            series = self._find(figures.vertex, figures.subtask)
            series.figures = figures
            self.hosts[figures.vertex, figures.subtask] = report.host
            series.is_live = True
            if series.running_at is None:
                series.running_at = self._clock()
            series.sample(report.seconds)

    # Acks

    def epoch_ended(self, acks: list[SlotAck], now: float) -> None:
        """Add an epoch, and split its time for subtasks that do not report it themselves."""
        since = self._epoch_ended_at
        longest = max((ack.seconds for ack in acks), default=0.0)
        seconds = longest if since is None else now - since
        self._epoch_ended_at = now
        self._age += seconds
        reading = {
            subtask.vertex
            for ack in acks
            for subtask in ack.subtasks
            if any(status.available for status in subtask.sources.values())
        }
        busy = {
            (subtask.vertex, subtask.subtask): subtask.metrics.busy_seconds
            for ack in acks
            for subtask in ack.subtasks
        }
        for ack in acks:
            for subtask in ack.subtasks:
                self._take(subtask, ack.host)
                series = self._find(subtask.vertex, subtask.subtask)
                if not series.is_live:
                    waited = self._waited_for_others(subtask, busy, reading)
                    self._add_times(series.figures, subtask, seconds, waited)
                    series.sample(self._age)
        self.epoch_parts = {
            "Work": longest,
            "End": max((ack.end_seconds for ack in acks), default=0.0),
            "Other": max(0.0, seconds - longest),
        }

    def _take(self, ack: SubtaskAck, host: str) -> None:
        key = (ack.vertex, ack.subtask)
        self.hosts[key] = host
        if ack.user_metrics:
            self._user[key] = ack.user_metrics
        series, now = self._find(*key), self._clock()
        if series.running_at is None:
            series.running_at = now
        if ack.finished and series.finished_at is None:
            series.finished_at = now
        total, epoch = self.vertices.setdefault(key, VertexMetrics()), ack.metrics
        total.add(epoch)
        # The last report of a live slot may be older than its ack.
        figures = series.figures
        figures.records_in = max(figures.records_in, total.records_in)
        figures.records_out = max(figures.records_out, total.records_out)
        figures.bytes_in = max(figures.bytes_in, total.bytes_in)
        figures.bytes_out = max(figures.bytes_out, total.bytes_out)
        figures.watermark_in = epoch.watermark_in
        figures.watermark_out = ack.watermark
        figures.operators = epoch.operators
        reported = figures.records
        figures.records = {
            node: {
                name: max(count, reported.get(node, {}).get(name, 0))
                for name, count in counts.items()
            }
            for node, counts in total.records.items()
        }

    def _waited_for_others(
        self, ack: SubtaskAck, busy: Mapping[Key, float], reading: set[int]
    ) -> float:
        """Return the seconds in which later levels worked although there was more to read.

        In an epoch one level works after the other. Time in which a vertex after this one works is
        back pressure if a source before it could have read more. Otherwise it is idle time.
        """
        sources = {ack.vertex, *(v for v, after in self._after.items() if ack.vertex in after)}
        if not sources & reading:
            return 0.0
        by_level: dict[int, float] = {}
        for (vertex, _), seconds in busy.items():
            if vertex in self._after[ack.vertex]:
                level = self._level_of[vertex]
                by_level[level] = max(by_level.get(level, 0.0), seconds)
        return sum(by_level.values())

    @staticmethod
    def _add_times(total: SubtaskFigures, ack: SubtaskAck, seconds: float, waited: float) -> None:
        busy = min(ack.metrics.busy_seconds, seconds)
        back_pressured = min(waited, seconds - busy)
        total.busy_seconds += busy
        total.back_pressured_seconds += back_pressured
        total.idle_seconds += seconds - busy - back_pressured

    def _find(self, vertex: int, subtask: int) -> _Series:
        found = self._series.get((vertex, subtask))
        if found is None:
            found = self._series[vertex, subtask] = _Series(SubtaskFigures(vertex, subtask))
        return found

    # Answers

    def overview(
        self,
        attempt: int,
        state_size: Callable[[int, int], int] = lambda *_: 0,
        timing_of: Callable[[int, int], TaskTiming | None] = lambda *_: None,
    ) -> dict[str, Any]:
        """Return the totals and rates of all subtasks as JSON.

        Args:
            attempt: The number of the attempt.
            state_size: The confirmed state of a vertex and a subtask, in bytes.
            timing_of: The durations of the last snapshot of a vertex and a subtask.
        """
        return {
            "epochs": self.epochs,
            "last_epoch_seconds": self.last_epoch_seconds,
            "longest_epoch_seconds": self.longest_epoch_seconds,
            "epoch_parts": dict(self.epoch_parts),
            # All levels run at the same time.
            "is_live": any(series.is_live for series in list(self._series.values())),
            "vertices": [
                {
                    "id": vertex.id,
                    "name": vertex.name,
                    "subtasks": [
                        self._subtask(
                            vertex,
                            subtask,
                            attempt,
                            state_size(vertex.id, subtask),
                            timing_of(vertex.id, subtask),
                        )
                        for subtask in range(vertex.parallelism)
                    ],
                }
                for vertex in self._graph.vertices
            ],
        }

    def _subtask(
        self,
        vertex: JobVertex,
        subtask: int,
        attempt: int,
        state_size: int,
        timing: TaskTiming | None,
    ) -> dict[str, Any]:
        series = self._series.get((vertex.id, subtask))
        if series is None:
            series = _Series(SubtaskFigures(vertex.id, subtask))
        figures, rates = series.figures, series.rates()
        metrics = self._task_metrics(series, rates, state_size, timing)
        return {
            "host": self.hosts.get((vertex.id, subtask)),
            "attempt": attempt,
            "scheduled_at": _millis(self._began_at),
            "running_at": _millis(series.running_at),
            "finished_at": _millis(series.finished_at),
            "records_in": figures.records_in,
            "records_out": figures.records_out,
            "bytes_in": figures.bytes_in,
            "bytes_out": figures.bytes_out,
            "busy_seconds": figures.busy_seconds,
            "idle_seconds": figures.idle_seconds,
            "back_pressured_seconds": figures.back_pressured_seconds,
            "watermark_in": figures.watermark_in,
            "watermark_out": figures.watermark_out,
            "state_size": state_size,
            "metrics": metrics,
            "operators": self._operator_metrics(figures, rates),
            "user_metrics": {
                str(node): dict(found)
                for node, found in self._user.get((vertex.id, subtask), {}).items()
            },
        }

    @staticmethod
    def _operator_metrics(
        figures: SubtaskFigures, rates: Mapping[Sum, float]
    ) -> dict[str, dict[str, float]]:
        """Return the metrics of operators by node and Flink's names."""
        found = {node: dict(values) for node, values in figures.operators.items()}
        for node, counts in figures.records.items():
            found.setdefault(node, {}).update(counts)
        for node, values in found.items():
            for name in (_FIRED_TIMERS, "numRecordsIn", "numRecordsOut"):
                if name in values:
                    rate = rates.get((node, name), 0.0)
                    values[f"{name}PerSecond"] = round(rate, 3)
        return {str(node): values for node, values in found.items()}

    def _task_metrics(
        self,
        series: _Series,
        rates: Mapping[Sum, float],
        state_size: int,
        timing: TaskTiming | None,
    ) -> dict[str, float]:
        """Return the metrics of a task by Flink's names."""
        figures = series.figures
        busy, back_pressured, idle = _shares(rates, is_running=series.finished_at is None)
        metrics = {
            "numRecordsIn": figures.records_in,
            "numRecordsInPerSecond": round(rates["records_in"], 3),
            "numRecordsOut": figures.records_out,
            "numRecordsOutPerSecond": round(rates["records_out"], 3),
            "numBytesIn": figures.bytes_in,
            "numBytesInPerSecond": round(rates["bytes_in"], 3),
            "numBytesOut": figures.bytes_out,
            "numBytesOutPerSecond": round(rates["bytes_out"], 3),
            "busyTimeMsPerSecond": busy,
            "backPressuredTimeMsPerSecond": back_pressured,
            # A slot waits before it works on a batch, never within one.
            "softBackPressuredTimeMsPerSecond": back_pressured,
            "hardBackPressuredTimeMsPerSecond": 0,
            "idleTimeMsPerSecond": idle,
            "isBackPressured": int(figures.out_pool >= 1.0),
            "accumulateBusyTimeMs": round(figures.busy_seconds * 1000),
            "accumulateBackPressuredTimeMs": round(figures.back_pressured_seconds * 1000),
            "accumulateIdleTimeMs": round(figures.idle_seconds * 1000),
            "buffers.inPoolUsage": round(figures.in_pool, 3),
            "buffers.outPoolUsage": round(figures.out_pool, 3),
            "currentInputWatermark": figures.watermark_in,
            "currentOutputWatermark": figures.watermark_out,
            # Firesteel's own: the confirmed state of the subtask, in bytes.
            "stateSize": state_size,
        }
        if timing is not None:
            metrics["checkpointAlignmentTime"] = round(timing.alignment * 1e9)
            metrics["checkpointStartDelayNanos"] = round(timing.start_delay * 1e9)
        if MIN_WATERMARK < figures.watermark_in < MAX_WATERMARK:
            metrics["watermarkLag"] = round(self._clock() * 1000) - figures.watermark_in
        return metrics

    def user_metrics(self) -> dict[str, Any]:
        return job_report(self._operator_names, self._by_subtask())

    def user_counters(self) -> dict[str, int]:
        return counter_totals(self._operator_names, self._by_subtask())

    def _by_subtask(self) -> list[OperatorSnapshots]:
        # A copy first: the job's thread continues while other threads ask.
        found = list(self._user.items())
        return [snapshots for _, snapshots in sorted(found, key=lambda item: item[0])]


def _shares(rates: Mapping[Sum, float], *, is_running: bool) -> tuple[int, int, int]:
    """Return busy, back-pressured and idle milliseconds per second, 1,000 in all."""
    times = ("busy_seconds", "back_pressured_seconds", "idle_seconds")
    total = sum(rates[name] for name in times)
    if not is_running or not total:
        return 0, 0, 1000
    busy = round(1000 * rates["busy_seconds"] / total)
    back_pressured = min(round(1000 * rates["back_pressured_seconds"] / total), 1000 - busy)
    return busy, back_pressured, 1000 - busy - back_pressured


def _vertices_after(graph: JobGraph) -> dict[int, frozenset[int]]:
    """Return the vertices that receive records of each vertex, directly or through others."""
    vertex_of = graph.vertex_of()
    direct: dict[int, set[int]] = {vertex.id: set() for vertex in graph.vertices}
    for edge in graph.edges:
        direct[vertex_of[edge.source].id].add(vertex_of[edge.target].id)
    return {vertex: frozenset(_reachable(vertex, direct)) for vertex in direct}


def _reachable(vertex: int, direct: Mapping[int, Iterable[int]]) -> set[int]:
    found: set[int] = set()
    waiting = [vertex]
    while waiting:
        for after in direct[waiting.pop()]:
            if after not in found:
                found.add(after)
                waiting.append(after)
    return found


def _millis(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
