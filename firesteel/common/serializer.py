"""TypeSerializer, the base class of serializers that users write."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import Generic, TypeVar

__all__ = ["TypeSerializer"]

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes elements to a stream of bytes and reads them back.

    >>> import struct
    >>> from io import BytesIO
    >>> class IntSerializer(TypeSerializer):
    ...     def serialize(self, element, stream):
    ...         stream.write(struct.pack(">i", element))
    ...     def deserialize(self, stream):
    ...         return struct.unpack(">i", stream.read(4))[0]
    >>> stream = BytesIO()
    >>> IntSerializer().serialize(7, stream)
    >>> IntSerializer().deserialize(BytesIO(stream.getvalue()))
    7
    """

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None:
        """Write one element.

        Args:
            element: The element.
            stream: The stream to write to.
        """

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T:
        """Read one element.

        Args:
            stream: The stream, at the first byte of the element.
        """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
