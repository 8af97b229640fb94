"""Recognizes pickles of plain data, which are safe to load.

A pickle names the classes and functions that it calls. A pickle that names only those below creates
numbers, texts, collections, dates and rows, and does nothing else.
"""

from __future__ import annotations

import io
import pickle
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from firesteel.common.time import Instant
from firesteel.common.types import RowKind

__all__ = ["foreign_class"]

_PLAIN = frozenset(
    {
        *(("builtins", name) for name in ("bytearray", "complex", "frozenset", "set")),
        *(("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")),
        ("collections", "OrderedDict"),
        ("collections", "deque"),
        ("decimal", "Decimal"),
        ("zoneinfo", "ZoneInfo._unpickle"),
        ("firesteel.common.types", "_create_row"),
        *(("firesteel.state.value_keys", name) for name in ("ArrayKey", "DictKey", "ListKey")),
    }
)


class _ForeignClass(Exception):
    """Ends the check of a pickle."""


class _Fixed(type):
    def __setattr__(cls, name: str, value: Any) -> None:
        raise TypeError(f"a pickle may not change {cls.__name__}")


class _FixedUUID(UUID, metaclass=_Fixed):
    __slots__ = ()


class _FixedInstant(Instant, metaclass=_Fixed):
    __slots__ = ()


class _FixedZone:
    """Stands for ZoneInfo. Pickles call ``getattr(ZoneInfo, "_unpickle")``, and no other attribute."""

    __slots__ = ()

    def attribute(self, owner: object, name: str) -> Any:
        if not isinstance(owner, _FixedZone) or name != "_unpickle":
            raise _ForeignClass("builtins.getattr")
        return ZoneInfo._unpickle  # type: ignore[attr-defined]  # noqa: SLF001 - pickles name it


class _FixedKind:
    """Stands for RowKind. A pickle could change the shared objects of an enumeration."""

    __slots__ = ()

    def check(self, value: int) -> int:
        return RowKind(value).value


# Pickles create objects of the first two with ``__new__``, which needs a class.
_STAND_INS: dict[tuple[str, str], Any] = {
    ("uuid", "UUID"): _FixedUUID,
    ("firesteel.common.time", "Instant"): _FixedInstant,
    ("zoneinfo", "ZoneInfo"): _FixedZone(),
    # Attributes of a bound method cannot be set.
    ("builtins", "getattr"): _FixedZone().attribute,
    ("firesteel.common.types", "RowKind"): _FixedKind().check,
}


class _PlainUnpickler(pickle.Unpickler):
    """Loads a pickle without access to the objects that it names, whose attributes it could set."""

    def find_class(self, module: str, name: str) -> Any:
        fixed = _STAND_INS.get((module, name))
        if fixed is not None:
            return fixed
        if (module, name) not in _PLAIN:
            raise _ForeignClass(f"{module}.{name}")
        # Attributes of this method wrapper cannot be set.
        return super().find_class(module, name).__call__


def foreign_class(payload: bytes | memoryview) -> str | None:
    """The first class or function in a pickle that is not plain data, or None.

    A pickle that cannot be loaded is not plain data.

    >>> foreign_class(pickle.dumps([1, ("two", 3.0), {4: None}]))
    >>> import fractions
    >>> foreign_class(pickle.dumps(fractions.Fraction(1, 3)))
    'fractions.Fraction'
    """
    try:
        _PlainUnpickler(io.BytesIO(payload)).load()
    except _ForeignClass as met:
        return str(met)
    except Exception as error:  # noqa: BLE001 - an untrusted pickle may raise any exception
        return f"an unknown kind ({error})"
    return None
