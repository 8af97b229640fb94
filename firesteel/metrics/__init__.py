"""Metrics of user functions and operators. Subtasks measure them, and the driver merges them."""

from firesteel.metrics.kinds import Counter, Distribution, Gauge, Meter
from firesteel.metrics.registry import Metric, MetricGroup, MetricRegistry
from firesteel.metrics.report import OperatorSnapshots, counter_totals, job_report, merge_snapshots

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
