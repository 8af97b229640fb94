"""Pickle for records and state, with classes of the user's ``__main__`` as a slower case."""

from __future__ import annotations

import pickle
from typing import Any

from firesteel.usercode import value_pickler


def dumps(value: Any) -> bytes:
    """Plain pickle is fast; it cannot name classes and functions of ``__main__``."""
    try:
        return pickle.dumps(value, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    # Outside of the handler: if this fails too, its error says all.
    return value_pickler.dumps(value)


def loads(payload: bytes | memoryview) -> Any:
    return pickle.loads(payload)
