"""Metrics of user functions and operators: measured in the subtasks, merged in the driver."""

from firesteel.metrics.counter import Counter
from firesteel.metrics.distribution import Distribution
from firesteel.metrics.gauge import Gauge
from firesteel.metrics.meter import Meter
from firesteel.metrics.metric_group import MetricGroup
from firesteel.metrics.registry import Metric, MetricRegistry
from firesteel.metrics.report import OperatorSnapshots, counter_totals, job_report
from firesteel.metrics.snapshots import merge_snapshots

__all__ = [
    "Counter",
    "Distribution",
    "Gauge",
    "Meter",
    "Metric",
    "MetricGroup",
    "MetricRegistry",
    "OperatorSnapshots",
    "counter_totals",
    "job_report",
    "merge_snapshots",
]
