"""Output tags: names and types of side outputs."""

from __future__ import annotations

from typing import Any

from firesteel.common.typeinfo import RowTypeInfo, TypeInformation, Types

__all__ = ["OutputTag"]


class OutputTag:
    """The name and type of a side output. Tags with the same id are equal.

    Args:
        tag_id: The name.
        type_info: The type of the records; a list of types is a row of them.

    >>> late = OutputTag("late", Types.STRING())
    >>> late == OutputTag("late")
    True
    >>> class Sort(ProcessFunction):
    ...     def process_element(self, value, ctx):
    ...         yield (late, value) if value.startswith("-") else value
    >>> sorted_out = env.from_collection(["a", "-b"]).process(Sort())
    >>> list(sorted_out.get_side_output(late).execute_and_collect())
    ['-b']
    """

    __slots__ = ("tag_id", "type_info")

    def __init__(
        self, tag_id: str, type_info: TypeInformation | list[TypeInformation] | None = None
    ) -> None:
        if not tag_id:
            raise ValueError(f"The id of an OutputTag must be a non-empty str, got {tag_id!r}")
        self.tag_id = tag_id
        self.type_info = _type_of(type_info)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self.tag_id == other.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r}, {self.type_info})"


def _type_of(type_info: Any) -> TypeInformation:
    if type_info is None:
        return Types.PICKLED_BYTE_ARRAY()
    if isinstance(type_info, list):
        return RowTypeInfo(type_info)
    if isinstance(type_info, TypeInformation):
        return type_info
    raise TypeError(
        f"The type of an OutputTag must be a TypeInformation, a list of types (a row) or "
        f"None, got {type_info!r}"
    )
