"""JobID, the identifier of a job."""

from __future__ import annotations

import re
import secrets

from firesteel.stability import public_evolving

__all__ = ["JobID"]

_FORM = re.compile(r"[0-9a-f]{32}")


class JobID:
    """The identifier of a job: 32 hexadecimal digits.

    Args:
        hex_digits: The digits. Upper case becomes lower case.

    >>> print(JobID("0123456789ABCDEF0123456789ABCDEF"))
    0123456789abcdef0123456789abcdef
    """

    __slots__ = ("_hex",)

    def __init__(self, hex_digits: str) -> None:
        digits = hex_digits.lower()
        if not _FORM.fullmatch(digits):
            raise ValueError(f"A job id must have 32 hexadecimal digits, got {hex_digits!r}.")
        self._hex = digits

    @staticmethod
    @public_evolving
    def generate() -> JobID:
        """Return a new random id. Not in PyFlink.

        >>> JobID.generate() == JobID.generate()
        False
        """
        return JobID(secrets.token_hex(16))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobID) and self._hex == other._hex

    def __hash__(self) -> int:
        return hash(self._hex)

    def __str__(self) -> str:
        return self._hex

    def __repr__(self) -> str:
        return f"JobID('{self._hex}')"
