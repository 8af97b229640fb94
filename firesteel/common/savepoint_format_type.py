"""SavepointFormatType, the format of a savepoint."""

from __future__ import annotations

from enum import Enum

from firesteel.stability import public_evolving

__all__ = ["SavepointFormatType"]


@public_evolving
class SavepointFormatType(Enum):
    """The format of a savepoint. Not in PyFlink, whose savepoints are canonical.

    CANONICAL is the same for all state backends. NATIVE consists of copies of the files of the
    state backend: it is faster, but it restores with the same state backend only. The hash map
    backend has no files of its own, so it writes the canonical format in both cases.

    >>> SavepointFormatType.CANONICAL.name, SavepointFormatType.NATIVE.name
    ('CANONICAL', 'NATIVE')
    """

    CANONICAL = 0
    NATIVE = 1
