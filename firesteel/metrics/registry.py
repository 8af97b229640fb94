"""All metrics of one operator in one subtask."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from firesteel.metrics.kinds import Counter, Distribution, Gauge, Meter


class Metric(Protocol):
    """What the registry asks of a metric."""

    def snapshot(self) -> dict[str, Any]:
        """Return the current value as JSON, in the form ``merge_snapshots`` takes."""


M = TypeVar("M", bound=Metric)


class MetricRegistry:
    """Keeps the metrics of an operator by their full names, which begin with the operator's.

    >>> registry = MetricRegistry()
    >>> registry.group("Map").counter("seen").inc()
    >>> registry.snapshot()
    {'Map.seen': {'kind': 'counter', 'count': 1}}
    """

    __slots__ = ("_metrics", "clock")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._metrics: dict[str, Metric] = {}

    def group(self, *scope: str) -> MetricGroup:
        return MetricGroup(self, scope)

    def register(self, name: str, kind: type[M], create: Callable[[], M] | None = None) -> M:
        """Return the metric of that name, made now if there is none."""
        existing = self._metrics.get(name)
        if existing is None:
            metric = kind() if create is None else create()
            self._metrics[name] = metric
            return metric
        if not isinstance(existing, kind):
            raise _clash(name, existing, kind)
        return existing

    def replace(self, name: str, metric: Metric) -> None:
        existing = self._metrics.get(name)
        if existing is not None and type(existing) is not type(metric):
            raise _clash(name, existing, type(metric))
        self._metrics[name] = metric

    def snapshot(self) -> dict[str, Any]:
        """Return the current values by name, as JSON."""
        return {name: metric.snapshot() for name, metric in self._metrics.items()}


def _clash(name: str, existing: Metric, kind: type[Any]) -> ValueError:
    return ValueError(
        f"The metric '{name}' is a {type(existing).__name__} already and cannot be a "
        f"{kind.__name__} too; choose another name"
    )


class MetricGroup:
    """A scope under which metrics are registered, as ``scope.name``.

    Asking twice for the same name and kind gives the same metric.
    """

    __slots__ = ("_registry", "_scope")

    def __init__(self, registry: MetricRegistry, scope: tuple[str, ...] = ()) -> None:
        self._registry = registry
        self._scope = scope

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """Return a group within this one. With ``extra``: a pair of a key and its value."""
        parts = (name,) if extra is None else (name, extra)
        return MetricGroup(self._registry, (*self._scope, *parts))

    def counter(self, name: str) -> Counter:
        return self._registry.register(self.get_metric_identifier(name), Counter)

    def gauge(self, name: str, obj: Callable[[], Any]) -> None:
        """Register a callable whose value is taken at every snapshot; a new one replaces it."""
        self._registry.replace(self.get_metric_identifier(name), Gauge(obj))

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        registry = self._registry
        return registry.register(
            self.get_metric_identifier(name),
            Meter,
            lambda: Meter(time_span_in_seconds, registry.clock),
        )

    def distribution(self, name: str) -> Distribution:
        return self._registry.register(self.get_metric_identifier(name), Distribution)

    def get_scope_components(self) -> tuple[str, ...]:
        return self._scope

    def get_metric_identifier(self, metric_name: str) -> str:
        return ".".join((*self._scope, metric_name))
