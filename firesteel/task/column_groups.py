"""Groups of records with equal keys, in a batch of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]
else:
    from firesteel.common import numpy_on_demand as np

    Integers = Any

__all__ = ["Groups", "Integers", "groups_of"]


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a batch, numbered in the order of their first records.

    Args:
        numbers: The group of each record.
        first: The position of the first record of each group.
    """

    numbers: Integers
    first: Integers

    def __len__(self) -> int:
        return len(self.first)


def groups_of(arrays: list[pa.Array]) -> Groups:
    """Group records by the values of one or more arrays. A null is a value like any other."""
    numbers, count = _numbered(arrays[0])
    for array in arrays[1:]:
        more, several = _numbered(array)
        numbers, count = _numbered(pa.array(numbers * several + more))
    first = np.empty(count, np.int64)
    # Of several records of a group, the one that is assigned last stays.
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return Groups(numbers, first)


def _numbered(array: pa.Array) -> tuple[Integers, int]:
    encoded = array.dictionary_encode("encode")
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
