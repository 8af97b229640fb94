"""The settings of one operator that its stream and its sink have in common."""

from __future__ import annotations

from typing import Any, Self

from firesteel.datastream.slot_sharing_group import SlotSharingGroup
from firesteel.errors import InvalidProgramError, shorten
from firesteel.graph.operator_ids import check_uid_hash
from firesteel.graph.parallelism import check_parallelism
from firesteel.graph.transformations import ChainingStrategy, Transformation

__all__ = ["OperatorSettings"]


class OperatorSettings:
    """Each setter changes the operator that produced this stream, and returns the stream."""

    def _operator(self, setting: str) -> Transformation:
        """The one operator that ``setting`` applies to; an error if there is no such."""
        raise NotImplementedError

    def name(self, name: str) -> Self:
        """Set the name that plans, logs and metrics show."""
        self._operator("name").name = _text("name", name)
        return self

    def uid(self, uid: str) -> Self:
        """Set the id by which state finds its operator again; unique within a job."""
        self._operator("uid").uid = _text("uid", uid)
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """Set the operator id itself: 32 hexadecimal characters."""
        self._operator("set_uid_hash").uid_hash = check_uid_hash(uid_hash)
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of subtasks."""
        operator = self._operator("set_parallelism")
        check_parallelism(parallelism)
        if operator.non_parallel and parallelism != 1:
            raise InvalidProgramError(
                f"The parallelism of the non parallel operator '{operator.name}' must be 1, "
                f"not {parallelism}."
            )
        operator.parallelism = parallelism
        return self

    def set_description(self, description: str) -> Self:
        """Set the longer text that the plan shows instead of the name."""
        self._operator("set_description").description = _text("description", description)
        return self

    def disable_chaining(self) -> Self:
        """Never run this operator in one chain with another."""
        self._operator("disable_chaining").chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: Any) -> Self:
        """Set the group, by its name or as a SlotSharingGroup; groups never share slots."""
        operator = self._operator("slot_sharing_group")
        operator.slot_sharing_group = self._register_slot_sharing_group(slot_sharing_group)
        return self

    def _register_slot_sharing_group(self, slot_sharing_group: Any) -> str:
        if isinstance(slot_sharing_group, str):
            return _text("slot sharing group", slot_sharing_group)
        if isinstance(slot_sharing_group, SlotSharingGroup):
            return slot_sharing_group.get_name()
        raise InvalidProgramError(
            "slot_sharing_group expects the name of a group or a SlotSharingGroup, but got "
            f"{shorten(slot_sharing_group)}."
        )


def _text(what: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidProgramError(f"The {what} must be a text that is not empty, not {value!r}.")
    return value
