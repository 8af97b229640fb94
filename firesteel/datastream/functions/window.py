"""Functions of a window's contents that need to know more: times, state, side outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from firesteel.datastream.functions.basic import Function
from firesteel.datastream.functions.runtime_context import KeyedStateStore

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Computes the results of one key's window.

    >>> class Count(WindowFunction):
    ...     def apply(self, key, window, inputs):
    ...         yield key, window.end, sum(1 for _ in inputs)
    """

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Return or yield the results."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Computes the results of a window of ``window_all``, which has no key."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Return or yield the results."""


W2 = TypeVar("W2")


class _Context(ABC, Generic[W2]):
    @abstractmethod
    def window(self) -> W2:
        """The window that fires."""

    @abstractmethod
    def current_processing_time(self) -> int: ...

    @abstractmethod
    def current_watermark(self) -> int: ...

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of this key and window. Remove it in ``clear``."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """State of this key, whatever the window."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Computes the results of one key's window, with a context at hand.

    ``yield output_tag, value`` sends to a side output.
    """

    class Context(_Context[W2]):
        """What there is to know besides the key and the records."""

    @abstractmethod
    def process(
        self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT]:
        """Return or yield the results."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """The window is dropped: remove its ``window_state``."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """As ProcessWindowFunction, for a window of ``window_all``, which has no key."""

    class Context(_Context[W2]):
        """What there is to know besides the records."""

    @abstractmethod
    def process(
        self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT]:
        """Return or yield the results."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """The window is dropped: remove its ``window_state``."""
