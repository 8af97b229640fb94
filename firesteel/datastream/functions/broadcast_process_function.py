"""A stream meets a broadcast one: every subtask has all of the latter's state."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.base_broadcast_process_function import (
    BaseBroadcastProcessFunction,
)


class BroadcastProcessFunction(BaseBroadcastProcessFunction):
    """Handles the records of a stream without a key, with broadcast state at hand.

    Results as in ProcessFunction.

    >>> class Allowed(BroadcastProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         if ctx.get_broadcast_state(ALLOWED).contains(value):
    ...             yield value
    ...     def process_broadcast_element(self, value, ctx):
    ...         ctx.get_broadcast_state(ALLOWED).put(value, True)
    """

    class Context(BaseBroadcastProcessFunction.Context):
        """For the broadcast side."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """For the other side."""

    @abstractmethod
    def process_element(
        self, value: Any, ctx: BroadcastProcessFunction.ReadOnlyContext
    ) -> Iterable[Any] | None:
        """A record of the stream that is not broadcast."""

    @abstractmethod
    def process_broadcast_element(
        self, value: Any, ctx: BroadcastProcessFunction.Context
    ) -> Iterable[Any] | None:
        """A record of the broadcast stream; it comes to every subtask."""
