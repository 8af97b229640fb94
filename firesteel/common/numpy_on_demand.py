"""NumPy, loaded at its first use. Executors that process no columns need not have it."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    try:
        import numpy as np
    except ImportError as error:
        raise ImportError(
            "Columns need NumPy on each machine that runs tasks: pip install numpy"
        ) from error
    value = getattr(np, name)
    # The next use finds it at once.
    globals()[name] = value
    return value
