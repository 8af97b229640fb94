"""Why a job cannot start from a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.errors import FiresteelError

__all__ = [
    "KeyTypeChangedError",
    "MaxParallelismChangedError",
    "NonRestoredStateError",
    "RestoreError",
    "StateTypeChangedError",
]


class RestoreError(FiresteelError, ValueError):
    """The checkpoint does not fit the program."""


class NonRestoredStateError(RestoreError):
    """The checkpoint has state that no operator of the program takes."""

    def __init__(self, missing: Sequence[str], listing: str) -> None:
        super().__init__(
            f"{listing} To leave that state behind, say so: "
            "execution.state-recovery.ignore-unclaimed-state: true. If an operator was not "
            "recognized, give it the uid that it had when the checkpoint was taken"
        )
        self.missing = tuple(missing)


class MaxParallelismChangedError(RestoreError):
    """Keys would belong to other key groups, or subtasks to none."""

    def __init__(self, operator: str, stored: int, reason: str) -> None:
        super().__init__(
            f"the state of {operator} was written with a maximum parallelism of {stored}, but {reason}"
        )
        self.operator = operator
        self.stored = stored


class KeyTypeChangedError(RestoreError, TypeError):
    """Keys of another type would find none of the state."""

    def __init__(self, operator: str, stored: str, wanted: str) -> None:
        super().__init__(
            f"the keyed state of {operator} was stored by keys of type {stored}, but the program's "
            f"key_by now gives keys of type {wanted}, which would find none of it. Keep the type, or give "
            "the operator another uid and leave the state behind"
        )
        self.operator = operator


class StateTypeChangedError(RestoreError, TypeError):
    """A state of the same name is of another kind or type now."""

    def __init__(self, operator: str, changed: Sequence[tuple[str, str, str]]) -> None:
        what = "; ".join(
            f"the state '{name}' was stored as {stored}, but the program now wants {wanted}"
            for name, stored, wanted in changed
        )
        super().__init__(
            f"{operator}: {what}. Give the new state another name, or keep its kind and type"
        )
        self.operator = operator
        self.states = tuple(name for name, _, _ in changed)
