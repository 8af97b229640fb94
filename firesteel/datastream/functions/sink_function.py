"""The simplest sink: a method that is called with every record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from firesteel.datastream.functions.base import Function
from firesteel.errors import NeverSupportedError


class SinkFunction(Function):
    """Consumes records, in plain Python. After a failure some records may come again.

    PyFlink's class of this name only wraps a Java object; here it is a base class to derive from.

    >>> class Keep(SinkFunction):
    ...     def __init__(self):
    ...         self.seen = []
    ...     def invoke(self, value, context):
    ...         self.seen.append(value)
    >>> keep = Keep()
    >>> keep.invoke("a", None)
    >>> keep.seen
    ['a']
    """

    class Context(ABC):
        @abstractmethod
        def current_processing_time(self) -> int:
            """The wall clock in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int: ...

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's event time in milliseconds. None: it has none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if cls is SinkFunction:
            raise NeverSupportedError(
                "SinkFunction(sink_func)",
                "there is no Java sink to wrap; derive a class from SinkFunction and implement "
                "invoke(value, context)",
            )
        return super().__new__(cls)

    @abstractmethod
    def invoke(self, value: Any, context: SinkFunction.Context) -> None: ...
