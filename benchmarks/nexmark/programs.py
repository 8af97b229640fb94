"""The queries that Firesteel runs, by name."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from benchmarks.nexmark.reference import ANSWERS

QUERIES = tuple(ANSWERS)


def program(name: str) -> ModuleType:
    """Return the module of a query.

    Its function ``query`` makes a stream of results from a stream of events. If results replace
    earlier ones, its function ``key`` says which.
    """
    return import_module(f"benchmarks.nexmark.queries.{name}")
