"""What the elements of an operator state are, as JSON."""

from __future__ import annotations

import json

from firesteel.common.typeinfo import TypeInformation
from firesteel.state.redistribution import Redistribution
from firesteel.state.type_descriptions import describe_type, type_of

__all__ = ["describe_elements", "element_types"]


def describe_elements(mode: Redistribution, *types: TypeInformation) -> str:
    """Of an element, or of a broadcast state's keys and values.

    >>> from firesteel.common import Types
    >>> describe_elements(Redistribution.UNION, Types.LONG())
    '["union", "LONG"]'
    """
    return json.dumps([mode.value, *map(describe_type, types)])


def element_types(description: str) -> list[TypeInformation]:
    """The way back."""
    return [type_of(one) for one in json.loads(description)[1:]]
