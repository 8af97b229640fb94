"""Source of field aggregations: sum, min, max, min_by and max_by as statements.

The statements set ``result`` from ``kept``, the value of the key so far, and ``record``. A keyed loop
contains them in place of a call, and elsewhere ``combining_function`` makes a function of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.task.codegen.compilation import define
from firesteel.task.codegen.fusion import CALL_REDUCTION

# min and max keep the earlier of two equal values.
_COMBINED = {
    "sum": "{kept} + {new}",
    "min": "new if (new := {new}) < {kept} else {kept}",
    "max": "new if (new := {new}) > {kept} else {kept}",
}


def of_values(kind: str) -> tuple[str, ...]:
    """Write sum, min or max of records that have no fields."""
    return (f"result = {_COMBINED[kind].format(kept='kept', new='record')}",)


def of_whole_records(kind: str, position: int | str) -> tuple[str, ...]:
    """Write min_by or max_by, which keep one of the two records."""
    comparison = {"min_by": "<", "max_by": ">"}[kind]
    field = f"[{position!r}]"
    return (f"result = record if record{field} {comparison} kept{field} else kept",)


def of_tuples(kind: str, index: int, size: int) -> tuple[str, ...]:
    """Write sum, min or max of one field of tuples, with a call for values of a different size.

    Args:
        kind: The aggregation.
        index: The field, counted from 0.
        size: The number of fields.
    """
    fields = [f"field{number}" for number in range(size)]
    combined = _COMBINED[kind].format(kept=fields[index], new=f"record[{index}]")
    results = [*fields[:index], combined, *fields[index + 1 :]]
    return (
        "try:",
        f"    {_tuple(fields)} = kept",
        "except ValueError:",
        f"    {CALL_REDUCTION[0]}",
        "else:",
        f"    result = {_tuple(results)}",
    )


def _tuple(parts: list[str]) -> str:
    return f"({', '.join(parts)})" if len(parts) > 1 else f"({parts[0]},)"


def combining_function(
    kind: str, statements: tuple[str, ...], otherwise: Callable[[Any, Any], Any] | None = None
) -> Callable[[Any, Any], Any]:
    """Make a function of the statements.

    Args:
        kind: The name of the function.
        statements: The body, which sets ``result``.
        otherwise: The function that the statements call for values that they cannot take.
    """
    lines = [f"def {kind}(kept, record):", *(f"    {line}" for line in statements)]
    source = "\n".join([*lines, "    return result\n"])
    return define(source, "aggregation", {"function0": otherwise})
