"""The id of a job."""

from __future__ import annotations

import re
import secrets

__all__ = ["JobID"]

_FORM = re.compile(r"[0-9a-f]{32}")


class JobID:
    """32 hexadecimal digits that name a job."""

    __slots__ = ("_hex",)

    def __init__(self, hex_digits: str) -> None:
        digits = hex_digits.lower()
        if not _FORM.fullmatch(digits):
            raise ValueError(f"A job id has 32 hexadecimal digits, not {hex_digits!r}.")
        self._hex = digits

    @staticmethod
    def generate() -> JobID:
        """Return a new random id."""
        return JobID(secrets.token_hex(16))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobID) and self._hex == other._hex

    def __hash__(self) -> int:
        return hash(self._hex)

    def __str__(self) -> str:
        return self._hex

    def __repr__(self) -> str:
        return f"JobID('{self._hex}')"
