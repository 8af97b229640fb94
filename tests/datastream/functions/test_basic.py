"""Function classes: their life cycle, the programs they refuse, and pickling."""

from __future__ import annotations

import inspect
from typing import Any

import cloudpickle
import pytest

from firesteel.datastream import functions
from firesteel.datastream.functions import (
    BaseBroadcastProcessFunction,
    Function,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    SinkFunction,
)
from firesteel.errors import NeverSupportedError

_BASES = (Function, BaseBroadcastProcessFunction)
_FUNCTION_CLASSES = [
    value
    for value in vars(functions).values()
    if inspect.isclass(value) and issubclass(value, Function) and value not in _BASES
]


@pytest.mark.parametrize("cls", _FUNCTION_CLASSES, ids=lambda cls: cls.__name__)
def test_every_kind_must_be_implemented(cls: type[Function]) -> None:
    assert inspect.isabstract(cls)
    with pytest.raises((TypeError, NeverSupportedError)):
        cls()


@pytest.mark.parametrize("cls", _FUNCTION_CLASSES, ids=lambda cls: cls.__name__)
def test_every_kind_travels_when_defined_in_a_test(cls: type[Function]) -> None:
    implemented = type(
        "Implemented", (cls,), {name: lambda *_: None for name in cls.__abstractmethods__}
    )
    function = implemented()
    function.note = "kept"
    assert cloudpickle.loads(cloudpickle.dumps(function)).note == "kept"


def test_open_and_close_are_optional() -> None:
    class Double(MapFunction):
        def map(self, value: Any) -> Any:
            return value * 2

    function = Double()
    function.open(None)  # type: ignore[arg-type]
    function.close()


@pytest.mark.parametrize("cls", [KeyedProcessFunction, KeyedCoProcessFunction])
def test_on_timer_is_optional(cls: Any) -> None:
    assert cls.on_timer(None, 0, None) is None


def test_a_sink_function_wraps_no_java_object() -> None:
    sink_function: Any = SinkFunction
    with pytest.raises(NeverSupportedError, match="derive a class from SinkFunction"):
        sink_function("org.apache.flink.SomeSink")


def test_a_derived_sink_function_takes_what_it_likes() -> None:
    class Keep(SinkFunction):
        def __init__(self, where: list[Any], *, limit: int) -> None:
            self.where = where
            self.limit = limit

        def invoke(self, value: Any, context: SinkFunction.Context) -> None:
            self.where.append(value)

    keep = Keep([], limit=3)
    keep.invoke(1, None)  # type: ignore[arg-type]
    assert keep.where == [1]
