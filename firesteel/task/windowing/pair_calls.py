"""Calling the user's function of two sides: pair by pair, or with all records of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from firesteel.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    Function,
    JoinFunction,
)
from firesteel.graph.operator_specs import WindowJoinSpec

Sides = tuple[list[Any], list[Any]]


class PairCalls:
    """``call(key, window, (lefts, rights))`` gives results. ``groups``: also if one side is empty.

    ``function`` is the user's object, to be opened and closed; None if it is a plain callable.
    """

    clear: None = None

    def __init__(self, spec: WindowJoinSpec) -> None:
        given = spec.window_function
        self.function: Function | None = given if isinstance(given, Function) else None
        self.groups = spec.groups
        self.user_call: Callable[..., Any] = given
        self.call: Callable[[Any, Any, Sides], Iterable[Any]]
        if isinstance(given, CoGroupFunction):
            self.user_call = given.co_group
        elif isinstance(given, JoinFunction | FlatJoinFunction):
            self.user_call = given.join
        if spec.groups:
            self.call = self._group
        elif isinstance(given, FlatJoinFunction):
            self.call = self._join_flat
        else:
            self.call = self._join

    def _join(self, _: Any, __: Any, sides: Sides) -> Iterable[Any]:
        # Not starmap(): it takes a StopIteration of the user's function for the end.
        join, (lefts, rights) = self.user_call, sides
        return chain.from_iterable([join(left, right) for right in rights] for left in lefts)

    def _join_flat(self, _: Any, __: Any, sides: Sides) -> Iterable[Any]:
        join, (lefts, rights) = self.user_call, sides
        return (result for left in lefts for right in rights for result in join(left, right))

    def _group(self, _: Any, __: Any, sides: Sides) -> Iterable[Any]:
        results: Iterable[Any] = self.user_call(*sides)
        return results
