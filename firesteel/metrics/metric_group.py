"""Where metrics get their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from firesteel.metrics.counter import Counter
from firesteel.metrics.distribution import Distribution
from firesteel.metrics.gauge import Gauge
from firesteel.metrics.meter import Meter

if TYPE_CHECKING:
    from firesteel.metrics.registry import MetricRegistry


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
