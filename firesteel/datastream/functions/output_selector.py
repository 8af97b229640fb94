"""Names the outputs a record goes to, for split and select. Not in PyFlink."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.functions.base import Function


class OutputSelector(Function):
    """Names the outputs of ``DataStream.split`` for each record: none, one or several.

    A plain text is the name of one output.

    >>> class Parity(OutputSelector):
    ...     def select(self, value):
    ...         return ["even" if value % 2 == 0 else "odd"]
    >>> Parity().select(4)
    ['even']
    """

    @abstractmethod
    def select(self, value: Any) -> Iterable[str] | str: ...
