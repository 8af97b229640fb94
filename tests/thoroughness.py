"""The number of examples of property tests: few in ``make test``, all in ``make test-all``."""

from __future__ import annotations

import os

_SHARE = 3
_LEAST = 10

is_thorough = os.environ.get("FIRESTEEL_HYPOTHESIS_PROFILE") == "search"


def examples(number: int) -> int:
    """Return the number of examples to try.

    Args:
        number: The number in ``make test-all``.
    """
    return number if is_thorough else min(number, max(_LEAST, number // _SHARE))
