"""Names that PyFlink lacks carry a stability mark."""

from __future__ import annotations

import importlib
import inspect
import json
from pkgutil import iter_modules

import pytest

from firesteel.datastream import connectors, formats
from firesteel.stability import Stability, stability_of
from tests.compat.ledger import API_FILE

_PACKAGES = (
    "firesteel.common",
    "firesteel.common.io",
    "firesteel.common.serialization",
    "firesteel.common.typeinfo",
    "firesteel.datastream",
    "firesteel.datastream.async_retry_predicates",
    "firesteel.datastream.connectors",
    *(name for _, name, _ in iter_modules(connectors.__path__, "firesteel.datastream.connectors.")),
    "firesteel.datastream.data_stream",
    *(name for _, name, _ in iter_modules(formats.__path__, "firesteel.datastream.formats.")),
    "firesteel.datastream.functions",
    "firesteel.datastream.state",
    "firesteel.datastream.window",
    "firesteel.metrics",
    "firesteel.state_processor",
    "firesteel.testing",
)
# PyFlink has them, but no `__all__` of PyFlink lists them.
_NOT_LISTED = {
    "AllWindowedStream",
    "AppendingState",
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "CachedDataStream",
    "Counter",
    "DateTypeInfo",
    "DefaultRollingPolicy",
    "Distribution",
    "Function",
    "Gauge",
    "InstantTypeInfo",
    "KeyedStateStore",
    "ListTypeInfo",
    "MapTypeInfo",
    "MergingState",
    "Meter",
    "MetricGroup",
    "ObjectArrayTypeInfo",
    "OnCheckpointRollingPolicy",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "SqlTimeTypeInfo",
    "State",
    "StateDescriptor",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
}
# Firesteel uses them itself; programs do not.
_INTERNAL = {"Metric", "MetricRegistry", "counter_totals", "job_report", "merge_snapshots"}


@pytest.mark.parametrize("package", _PACKAGES)
def test_every_name_that_pyflink_lacks_is_marked(package: str) -> None:
    known = {name for module in json.loads(API_FILE.read_text()).values() for name in module}
    module = importlib.import_module(package)
    unmarked = []
    for name in set(module.__all__) - known - _NOT_LISTED - _INTERNAL:
        value = getattr(module, name)
        is_error = inspect.isclass(value) and issubclass(value, Exception)
        if is_error or not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if stability_of(value) is Stability.STABLE:
            unmarked.append(name)
    assert unmarked == []


@pytest.mark.parametrize("package", _PACKAGES)
def test_a_name_of_pyflink_is_stable(package: str) -> None:
    known = {name for module in json.loads(API_FILE.read_text()).values() for name in module}
    module = importlib.import_module(package)
    classes = [getattr(module, name) for name in set(module.__all__) & known]
    marked = [one for one in classes if inspect.isclass(one) and "__stability__" in vars(one)]
    assert marked == []
