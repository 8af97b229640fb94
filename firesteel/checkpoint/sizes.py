"""Sizes as people read them."""

from __future__ import annotations

__all__ = ["readable_size"]


def readable_size(size: int) -> str:
    """Powers of 1000.

    >>> readable_size(999), readable_size(1500), readable_size(2_000_000_000_000)
    ('999 B', '1.5 kB', '2000.0 GB')
    """
    if size < 1000:
        return f"{size} B"
    amount = size / 1000
    for unit in ("kB", "MB"):
        if amount < 1000:
            return f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
