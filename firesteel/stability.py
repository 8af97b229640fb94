"""Stability marks of the public API, after Flink's annotations.

Names that PyFlink has are stable: they keep PyFlink's signatures and follow its deprecations. Names
that PyFlink lacks carry a mark. A name without a mark that no public package exports is internal.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

_T = TypeVar("_T", bound=Callable[..., Any])

_ATTRIBUTE = "__stability__"


class Stability(Enum):
    """The promise of a stability mark.

    >>> Stability.EXPERIMENTAL.value
    'may change or go in any release'
    """

    STABLE = "keeps working in all releases of a major version"
    EVOLVING = "may change in a minor release, with a note in the changelog"
    EXPERIMENTAL = "may change or go in any release"


def public_evolving(target: _T) -> _T:
    """Mark a class or function that may change in a minor release.

    >>> @public_evolving
    ... def split(stream): ...
    >>> stability_of(split).name
    'EVOLVING'
    """
    setattr(target, _ATTRIBUTE, Stability.EVOLVING)
    return target


def experimental(target: _T) -> _T:
    """Mark a class or function that may change or go in any release.

    >>> @experimental
    ... class Probe: ...
    >>> stability_of(Probe).name
    'EXPERIMENTAL'
    """
    setattr(target, _ATTRIBUTE, Stability.EXPERIMENTAL)
    return target


def stability_of(target: Any) -> Stability:
    """Return the mark of a public class or function. A name without a mark is stable.

    Args:
        target: The class or function. A mark is not inherited.

    >>> stability_of(DataStream).value
    'keeps working in all releases of a major version'
    """
    mark = vars(target).get(_ATTRIBUTE, Stability.STABLE)
    assert isinstance(mark, Stability)
    return mark
