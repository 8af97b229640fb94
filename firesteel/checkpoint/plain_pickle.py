"""Which pickles are plain data: reading those runs nobody's code.

A pickle names the classes and functions that it calls. One that names only those below rebuilds
numbers, texts, collections, dates and rows, and can do nothing else.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

__all__ = ["foreign_class"]

_PLAIN = frozenset(
    {
        *(("builtins", name) for name in ("bytearray", "complex", "frozenset", "set")),
        *(("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")),
        ("collections", "OrderedDict"),
        ("collections", "deque"),
        ("decimal", "Decimal"),
        ("uuid", "UUID"),
        ("zoneinfo", "ZoneInfo._unpickle"),
        ("firesteel.common.time", "Instant"),
        ("firesteel.common.types", "RowKind"),
        ("firesteel.common.types", "_create_row"),
    }
)


class _ForeignClass(Exception):
    """Ends the reading of a pickle."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        raise _ForeignClass(f"{module}.{name}")


def foreign_class(payload: bytes | memoryview) -> str | None:
    """The first class or function of somebody else's that a pickle names; None: it is plain data.

    >>> foreign_class(pickle.dumps([1, ("two", 3.0), {4: None}]))
    >>> import fractions
    >>> foreign_class(pickle.dumps(fractions.Fraction(1, 3)))
    'fractions.Fraction'
    """
    try:
        _PlainUnpickler(io.BytesIO(payload)).load()
    except _ForeignClass as met:
        return str(met)
    return None
