"""StreamFormat: how the bytes of a file become records."""

from __future__ import annotations

import codecs

__all__ = ["StreamFormat"]

# Codecs whose state or byte values do not let one find a line's end by its bytes.
_STATEFUL_CODECS = ("iso2022", "hz", "utf-7", "utf_7", "utf-8-sig", "punycode", "idna")


class StreamFormat:
    r"""Reads one record after the other. The format there is: lines of text.

    A line ends with ``\n``, ``\r`` or ``\r\n``. Bytes that are no text in the character set become
    replacement characters, as in Java.
    """

    def __init__(self, charset_name: str) -> None:
        try:
            self._codec = codecs.lookup(charset_name).name
        except LookupError:
            raise ValueError(f"Unknown character set {charset_name!r}") from None

    @staticmethod
    def text_line_format(charset_name: str = "UTF-8") -> StreamFormat:
        return StreamFormat(charset_name)

    @property
    def codec(self) -> str:
        """Python's name of the character set."""
        return self._codec

    @property
    def is_splittable(self) -> bool:
        """Whether lines can be found from the middle of a file: newline bytes are only that."""
        if self._codec.startswith(_STATEFUL_CODECS):
            return False
        return "\n\r".encode(self._codec, errors="replace") == b"\n\r"

    def __repr__(self) -> str:
        return f"StreamFormat.text_line_format({self._codec!r})"
