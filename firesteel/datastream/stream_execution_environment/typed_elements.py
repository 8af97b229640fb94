"""The elements of from_collection, fitted to their declared type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from firesteel.common.typeinfo import TypeInformation

_CHUNK_ELEMENTS = 8192


def fit(elements: Iterable[Any], type_info: TypeInformation) -> Iterable[Any]:
    """Check and convert the elements. What fits already is not copied; a range stays a range."""
    if isinstance(elements, range):
        ends = [elements[0], elements[-1]] if elements else []
        return elements if type_info.convert_batch(ends) is ends else _chunked(elements, type_info)
    if isinstance(elements, list):
        return type_info.convert_batch(elements)
    return _chunked(elements, type_info)


def _chunked(elements: Iterable[Any], type_info: TypeInformation) -> Iterator[Any]:
    iterator = iter(elements)
    while chunk := list(islice(iterator, _CHUNK_ELEMENTS)):
        yield from type_info.convert_batch(chunk)
