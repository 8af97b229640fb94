"""Whether a result is another than the last one."""

from __future__ import annotations

from typing import Any


def is_another(result: Any, last: Any) -> bool:
    """Whether they differ; what cannot be compared (an array of numbers) does."""
    try:
        return bool(result != last)
    except (TypeError, ValueError):
        return True
