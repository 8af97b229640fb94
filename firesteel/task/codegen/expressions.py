"""Plain functions as text: ``lambda order: order[0]`` is ``record[0]`` in a loop that is written for it.

To call a function costs several times what most key selectors do.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType, NoneType
from typing import Any

_OPERATORS = frozenset(("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"))
_LITERALS = (int, str, bool, NoneType)
# Longer ones gain nothing, and Python's parser has its limits.
_MAX_INSTRUCTIONS = 40


def expression_of(function: Callable[[Any], Any], argument: str) -> str | None:
    """What the function returns, in terms of its argument.

    None unless it consists of operators, constants and its argument alone: whatever it calls or names
    might be another thing the next time. Byte code that is not known here means None, too.
    """
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    if code.co_argcount != 1 or code.co_kwonlyargcount:
        return None
    instructions = list(dis.get_instructions(code))
    if len(instructions) > _MAX_INSTRUCTIONS:
        return None
    stack: list[str] = []
    for instruction in instructions:
        name, value = instruction.opname, instruction.argval
        if name in ("LOAD_FAST", "LOAD_FAST_BORROW") and value == code.co_varnames[0]:
            stack.append(argument)
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT", "RETURN_CONST") and type(value) in _LITERALS:
            stack.append(f"({value!r})")
        elif name in ("BINARY_OP", "BINARY_SUBSCR") and len(stack) > 1:
            right, left = stack.pop(), stack.pop()
            if name == "BINARY_SUBSCR" or instruction.argrepr == "[]":
                stack.append(f"{left}[{right}]")
            elif instruction.argrepr in _OPERATORS:
                stack.append(f"({left} {instruction.argrepr} {right})")
            else:
                return None
        elif name not in ("RESUME", "NOP", "RETURN_VALUE"):
            return None
    return stack[0] if len(stack) == 1 else None


@lru_cache(maxsize=128)
def _compiled(source: str, name: str) -> CodeType:
    """The subtasks of a chain in this process have the same loop around different functions."""
    return compile(source, name, "exec")


def defined(source: str, function: str, name: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The ``function`` that the source defines. ``names`` are its globals, and ``name`` stands in tracebacks."""
    exec(_compiled(source, name), names)
    made: Callable[..., Any] = names[function]
    return made
