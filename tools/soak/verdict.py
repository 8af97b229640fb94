"""The verdict over a soak: slopes of resources over time, and the limits that they must keep."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from tools.soak.supervisor import Course, Observation

# Caches fill and code is compiled in the first minutes of a driver.
_WARM_UP_SECONDS = 120.0
# The slope of a driver that lived for less time says little.
_SHORTEST_LIFE_SECONDS = 240.0
# Pairs of samples for a slope. Their number grows with the square of the samples.
_MOST_SAMPLES = 200


@dataclass(frozen=True, slots=True)
class Series:
    """A figure over time. Its slope per minute must stay below ``limit``."""

    title: str
    read: Callable[[Observation], float | None]
    limit: float
    unit: str = ""


def _per_process(observation: Observation) -> float | None:
    slots = observation.resources.slots
    return slots.memory / slots.processes if slots.processes else None


SERIES = (
    Series("memory of the driver", lambda o: o.resources.driver.memory, 1.0, "MB"),
    Series("live objects in the JVM", lambda o: o.heap, 1.0, "MB"),
    Series("Arrow buffers in the JVM", lambda o: o.arrow, 1.0, "MB"),
    Series("memory of the JVM", lambda o: o.resources.jvm.memory, 8.0, "MB"),
    Series("memory of a slot process", _per_process, 1.0, "MB"),
    Series("threads of the driver", lambda o: o.resources.driver.threads, 0.2),
    Series("threads of the JVM", lambda o: o.resources.jvm.threads, 1.0),
    Series("handles of the driver", lambda o: o.resources.driver.handles, 0.5),
    Series("handles of the JVM", lambda o: o.resources.jvm.handles, 1.0),
    Series("files", lambda o: o.resources.files, 2.0),
    Series("time per epoch", lambda o: o.epoch_ms, 10.0, "ms"),
    Series("time per checkpoint", lambda o: o.checkpoint_ms, 10.0, "ms"),
)


@dataclass(frozen=True, slots=True)
class Slope:
    """The change of a figure per minute, or None if no driver lived long enough to tell."""

    series: Series
    first: float
    last: float
    per_minute: float | None

    @property
    def is_good(self) -> bool:
        return self.per_minute is None or self.per_minute <= self.series.limit


def slopes(course: Course) -> list[Slope]:
    """Return the slope of every figure over the lives of all drivers."""
    return [_slope(series, course.observations) for series in SERIES]


def _slope(series: Series, observations: Sequence[Observation]) -> Slope:
    lives: dict[int, list[tuple[float, float]]] = {}
    for observation in observations:
        value = series.read(observation)
        if value is not None:
            lives.setdefault(observation.life, []).append((observation.resources.seconds, value))
    found: list[tuple[float, float]] = []
    for points in lives.values():
        begin, end = points[0][0], points[-1][0]
        if end - begin >= _SHORTEST_LIFE_SECONDS:
            warm = [point for point in points if point[0] >= begin + _WARM_UP_SECONDS]
            found.append((end - begin, median_slope(warm) * 60.0))
    values = [value for points in lives.values() for _, value in points]
    weight = sum(seconds for seconds, _ in found)
    return Slope(
        series,
        values[0] if values else 0.0,
        values[-1] if values else 0.0,
        sum(seconds * slope for seconds, slope in found) / weight if weight else None,
    )


def median_slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the median of the slopes between all pairs of points (Theil and Sen).

    Single peaks, for example during a restart, do not change it.
    """
    step = max(1, len(points) // _MOST_SAMPLES)
    pairs = combinations(points[::step], 2)
    return statistics.median(
        [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in pairs if x2 > x1] or [0.0]
    )


def table(found: Sequence[Slope]) -> str:
    """Return the slopes as a table of Markdown."""
    lines = ["| figure | first | last | per minute | limit |", "|---|---|---|---|---|"]
    for slope in found:
        unit = f" {slope.series.unit}" if slope.series.unit else ""
        change = "short run" if slope.per_minute is None else f"{slope.per_minute:+.2f}{unit}"
        lines.append(
            f"| {slope.series.title} | {slope.first:.0f}{unit} | {slope.last:.0f}{unit} "
            f"| {change} | {slope.series.limit:g}{unit} |"
        )
    return "\n".join(lines)
