"""Functions of the contents of a window."""

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
    """Computes the results of the window of a key.

    >>> class Count(WindowFunction):
    ...     def apply(self, key, window, inputs):
    ...         yield key, window.id, len(list(inputs))
    >>> letters = env.from_collection(["a", "b", "a"]).key_by(lambda letter: letter)
    >>> list(letters.count_window(2).apply(Count()).execute_and_collect())
    [('a', 0, 2)]
    """

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Return or yield the results.

        Args:
            key: The key.
            window: The window.
            inputs: The records, or the one result of ``reduce`` or ``aggregate``.
        """


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Computes the results of a window of ``window_all``.

    >>> class Count(AllWindowFunction):
    ...     def apply(self, window, inputs):
    ...         yield window.id, len(list(inputs))
    >>> windows = env.from_collection([1, 2, 3, 4]).window_all(CountTumblingWindowAssigner.of(2))
    >>> list(windows.apply(Count()).execute_and_collect())
    [(0, 2), (1, 2)]
    """

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Return or yield the results.

        Args:
            window: The window.
            inputs: The records, or the one result of ``reduce`` or ``aggregate``.
        """


W2 = TypeVar("W2")


class _Context(ABC, Generic[W2]):
    """The window, the clocks, and state."""

    @abstractmethod
    def window(self) -> W2:
        """Return the window that fires."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the clock of the subtask, in milliseconds since 1970."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the watermark in milliseconds."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """Return the store of state of this key and window. Delete the state in ``clear``."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """Return the store of state of this key in all windows."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Computes the results of the window of a key, with a context.

    ``yield output_tag, value`` sends a value to a side output.

    >>> class Count(ProcessWindowFunction):
    ...     def process(self, key, context, elements):
    ...         total = context.global_state().get_state(ValueStateDescriptor("n", Types.INT()))
    ...         firings = context.window_state().get_state(ValueStateDescriptor("f", Types.INT()))
    ...         firings.update((firings.value() or 0) + 1)
    ...         total.update((total.value() or 0) + len(list(elements)))
    ...         yield key, context.window().id, total.value(), firings.value()
    ...     def clear(self, context):
    ...         context.window_state().get_state(ValueStateDescriptor("f", Types.INT())).clear()
    >>> letters = env.from_collection(["a"] * 4).key_by(lambda letter: letter)
    >>> list(letters.count_window(2).process(Count()).execute_and_collect())
    [('a', 0, 2, 1), ('a', 1, 4, 1)]
    """

    class Context(_Context[W2]):
        """The window, the clocks, and state of the key."""

    @abstractmethod
    def process(
        self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT]:
        """Return or yield the results.

        Args:
            key: The key.
            context: The window, the clocks, and state.
            elements: The records, or the one result of ``reduce`` or ``aggregate``.
        """

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Called when the window is dropped. Delete its ``window_state`` here.

        Args:
            context: The window, the clocks, and state.
        """


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Computes the results of a window of ``window_all``, with a context.

    >>> class Count(ProcessAllWindowFunction):
    ...     def process(self, context, elements):
    ...         late = context.current_watermark() > context.current_processing_time()
    ...         yield context.window().id, len(list(elements)), late
    ...     def clear(self, context):
    ...         pass
    >>> windows = env.from_collection([1, 2]).window_all(CountTumblingWindowAssigner.of(2))
    >>> list(windows.process(Count()).execute_and_collect())
    [(0, 2, False)]
    """

    class Context(_Context[W2]):
        """The window, the clocks, and state."""

    @abstractmethod
    def process(
        self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]
    ) -> Iterable[OUT]:
        """Return or yield the results.

        Args:
            context: The window, the clocks, and state.
            elements: The records, or the one result of ``reduce`` or ``aggregate``.
        """

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Called when the window is dropped. Delete its ``window_state`` here.

        Args:
            context: The window, the clocks, and state.
        """
