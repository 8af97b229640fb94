"""Joins without a window: what ``join_on`` gives. Not in PyFlink, nor in Flink's DataStream API."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream.function_arguments import (
    ProgramTypeError,
    as_type,
    require_function_or_callable,
)
from firesteel.datastream.data_stream.stream_pair import StreamPair, two_input_stream
from firesteel.datastream.functions import Function, JoinFunction
from firesteel.datastream.state import StateTtlConfig
from firesteel.errors import InvalidProgramError, shorten
from firesteel.graph.operator_specs import JoinSpec

if TYPE_CHECKING:
    from firesteel.datastream.data_stream.data_stream import DataStream
    from firesteel.datastream.data_stream.keyed_stream import KeyedStream
    from firesteel.datastream.data_stream.stream_base import StreamBase

__all__ = ["KeyedJoin", "UnboundedJoin"]

_KINDS = ("inner", "left", "right", "full")


class KeyedJoin:
    """Both streams have their keys. ``apply`` makes a stream of changes of it."""

    def __init__(self, left: KeyedStream, right: KeyedStream, how: str) -> None:
        self._left = left
        self._right = right
        self._how = how
        self._predicate: Callable[[Any, Any], bool] | None = None
        self._ttl: StateTtlConfig | None = None

    def filter(self, predicate: Callable[[Any, Any], bool]) -> Self:
        """A further condition: ``predicate(left, right)`` must be true for a pair."""
        if isinstance(predicate, Function):
            raise ProgramTypeError(
                f"filter of a join expects a callable predicate(left, right), but got "
                f"{shorten(predicate)}."
            )
        require_function_or_callable("filter of a join", predicate, JoinFunction)
        self._predicate = predicate
        return self

    def with_ttl(self, ttl: Time | Duration | StateTtlConfig) -> Self:
        """Forget records so long after they came; what they gave until then stays."""
        if isinstance(ttl, Duration):
            ttl = Time.milliseconds(ttl.to_millis())
        if isinstance(ttl, Time):
            ttl = StateTtlConfig.new_builder(ttl).build()
        if not isinstance(ttl, StateTtlConfig):
            raise ProgramTypeError(
                f"with_ttl expects a Time, a Duration or a StateTtlConfig, but got {shorten(ttl)}."
            )
        self._ttl = ttl if ttl.is_enabled() else None
        return self

    def apply(
        self,
        function: Callable[[Any, Any], Any] | JoinFunction | None = None,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Rows with a RowKind: the pair, or the fields that ``function(left, right)`` returns.

        Where an outer join has no match, the other one is None. The function must always return the same
        for the same pair, because a result is taken back by making it again.
        """
        if function is not None:
            require_function_or_callable("apply of a join", function, JoinFunction)
        spec = JoinSpec(
            function=function,
            predicate=self._predicate,
            left_outer=self._how in ("left", "full"),
            right_outer=self._how in ("right", "full"),
            ttl=self._ttl,
        )
        name = f"{self._how.capitalize()} Join"
        return two_input_stream(name, spec, self._left, self._right, as_type("apply", output_type))


class UnboundedJoin(StreamPair[KeyedJoin]):
    """``left.join_on(right, "left").where(key1).equal_to(key2).apply()``."""

    _operation = "join_on"

    def __init__(self, input1: StreamBase, input2: StreamBase, how: str) -> None:
        super().__init__(input1, input2)
        if how == "cross":
            raise InvalidProgramError(
                "join_on: a cross join has no key to distribute the streams by, and would have to keep "
                f"and compare all records of both. Use one of {', '.join(_KINDS)} with a key condition, "
                "or broadcast() and connect()."
            )
        if how not in _KINDS:
            raise InvalidProgramError(
                f"join_on expects one of {', '.join(_KINDS)}, but got {shorten(how)}."
            )
        self._how = how

    def _keyed(self, left: KeyedStream, right: KeyedStream) -> KeyedJoin:
        return KeyedJoin(left, right, self._how)
