"""InputFormat, which ``env.create_input`` reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from firesteel.stability import public_evolving

__all__ = ["InputFormat"]


class InputFormat(ABC):
    """A bounded input for ``StreamExecutionEnvironment.create_input``.

    Flink keeps it for old programs. A FileSource does the same and more.

    >>> from firesteel.common.io import InputFormat
    >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
    >>> class Numbers(InputFormat):
    ...     def to_source(self):
    ...         return NumberSequenceSource(1, 3)
    >>> list(env.create_input(Numbers()).execute_and_collect())
    [1, 2, 3]
    """

    @abstractmethod
    @public_evolving
    def to_source(self) -> Any:
        """Return the source that reads the input. Not in PyFlink."""
