"""Names of parameters that are the same in every process, as pytest-xdist needs them."""

import re


def without_address(value: object) -> str:
    """`<object object>`, not `<object object at 0x7f3a...>`."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
