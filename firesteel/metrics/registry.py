"""The metrics of an operator in a subtask."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from firesteel.metrics.kinds import Counter, Distribution, Gauge, Meter
from firesteel.stability import public_evolving


class Metric(Protocol):
    """The interface of a metric that the registry needs."""

    def snapshot(self) -> dict[str, Any]:
        """Return the current value as JSON, in the form that ``merge_snapshots`` takes."""


M = TypeVar("M", bound=Metric)


class MetricRegistry:
    """Keeps the metrics of an operator by full name. A full name starts with the operator's name.

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
        """Return the metric of a name. A missing metric is created."""
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
        f"The metric '{name}' is already a {type(existing).__name__} and cannot also be a "
        f"{kind.__name__}; choose a different name"
    )


class MetricGroup:
    """A scope for metrics, from ``RuntimeContext.get_metrics_group()``.

    The full name of a metric is ``scope.name``. A second call for the same name and kind returns
    the same metric.

    >>> class Measure(MapFunction):
    ...     def open(self, runtime_context):
    ...         group = runtime_context.get_metrics_group().add_group("words")
    ...         self.count = group.counter("count")
    ...         self.lengths = group.distribution("lengths")
    ...     def map(self, word):
    ...         self.count.inc()
    ...         self.lengths.update(len(word))
    ...         return word
    >>> sink = env.from_collection(["be", "not"]).map(Measure()).name("measure").print()
    >>> client = env.execute_async()
    be
    not
    >>> client.get_metrics()["measure.words.count"]
    {'kind': 'counter', 'count': 2}
    >>> client.get_metrics()["measure.words.lengths"]["mean"]
    2.5
    """

    __slots__ = ("_registry", "_scope")

    def __init__(self, registry: MetricRegistry, scope: tuple[str, ...] = ()) -> None:
        self._registry = registry
        self._scope = scope

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """Return a group inside this one.

        Args:
            name: The name of the group. With ``extra`` it is a key.
            extra: The value of the key, or None.

        >>> from firesteel.metrics import MetricRegistry
        >>> group = MetricRegistry().group("Map")
        >>> group.add_group("region", "eu").get_metric_identifier("orders")
        'Map.region.eu.orders'
        """
        parts = (name,) if extra is None else (name, extra)
        return MetricGroup(self._registry, (*self._scope, *parts))

    def counter(self, name: str) -> Counter:
        """Return the counter of a name.

        Args:
            name: The name in this group.

        Raises:
            ValueError: A metric of a different kind has the name.
        """
        return self._registry.register(self.get_metric_identifier(name), Counter)

    def gauge(self, name: str, obj: Callable[[], Any]) -> None:
        """Register a function whose result is reported.

        A second function of the same name replaces the first.

        Args:
            name: The name in this group.
            obj: A function without parameters.

        Raises:
            ValueError: A metric of a different kind has the name.

        >>> from firesteel.metrics import MetricRegistry
        >>> registry = MetricRegistry()
        >>> registry.group("Map").gauge("depth", lambda: 3)
        >>> registry.snapshot()
        {'Map.depth': {'kind': 'gauge', 'values': [3]}}
        """
        self._registry.replace(self.get_metric_identifier(name), Gauge(obj))

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Return the meter of a name.

        Args:
            name: The name in this group.
            time_span_in_seconds: The span of time over which the rate is measured.

        Raises:
            ValueError: A metric of a different kind has the name.

        >>> from firesteel.metrics import MetricRegistry
        >>> meter = MetricRegistry().group("Map").meter("records", time_span_in_seconds=30)
        >>> meter.mark_event()
        >>> meter.get_count()
        1
        """
        registry = self._registry
        return registry.register(
            self.get_metric_identifier(name),
            Meter,
            lambda: Meter(time_span_in_seconds, registry.clock),
        )

    def distribution(self, name: str) -> Distribution:
        """Return the distribution of a name.

        Args:
            name: The name in this group.

        Raises:
            ValueError: A metric of a different kind has the name.
        """
        return self._registry.register(self.get_metric_identifier(name), Distribution)

    @public_evolving
    def get_scope_components(self) -> tuple[str, ...]:
        """Return the names of the scope, from the outside in. Not in PyFlink.

        >>> from firesteel.metrics import MetricRegistry
        >>> MetricRegistry().group("Map").add_group("words").get_scope_components()
        ('Map', 'words')
        """
        return self._scope

    @public_evolving
    def get_metric_identifier(self, metric_name: str) -> str:
        """Return the full name of a metric. Not in PyFlink.

        Args:
            metric_name: The name in this group.

        >>> from firesteel.metrics import MetricRegistry
        >>> MetricRegistry().group("Map").get_metric_identifier("words")
        'Map.words'
        """
        return ".".join((*self._scope, metric_name))
