"""Which of several functions of the user's raised an error."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any


def failed_function(error: BaseException, *functions: Callable[..., Any]) -> Callable[..., Any]:
    """The one that was running, as the traceback shows; else the last."""
    running: set[CodeType] = set()
    trace = error.__traceback__
    while trace is not None:
        running.add(trace.tb_frame.f_code)
        trace = trace.tb_next
    for function in functions:
        if getattr(function, "__code__", None) in running:
            return function
        if getattr(getattr(function, "__func__", None), "__code__", None) in running:
            return function
    return functions[-1]
