"""Reader of byte code: a plain function as the text of an expression.

``lambda order: order[0]`` is ``record[0]`` in a loop whose record is called ``record``. A call costs
several times as much as most key selectors do, so loops contain the expression instead.

The instructions of CPython differ from version to version. The tests of this module run on each
version in ``READ_VERSIONS``. On any other version no function has an expression, and loops call it.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, NoneType
from typing import Any

READ_VERSIONS = ((3, 11), (3, 12), (3, 13))

_OPERATORS = frozenset(("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>"))
_WITHOUT_EFFECT = frozenset(("RESUME", "NOP", "RETURN_VALUE"))
_LITERALS = (int, str, bool, NoneType)
# Longer functions gain little, and Python's parser limits how deep an expression is nested.
_MAX_INSTRUCTIONS = 40


def expression_of(function: Callable[[Any], Any], argument: str) -> str | None:
    """Return what a function computes, as an expression of its argument.

    The result is None unless the function consists of operators, constants and its one argument.
    Anything that it calls or names could differ between two evaluations. The result is also None
    if the byte code has an instruction that this reader does not know.

    Args:
        function: A function of one argument.
        argument: The variable that stands for the argument in the expression.
    """
    if not isinstance(function, FunctionType) or sys.version_info[:2] not in READ_VERSIONS:
        return None
    code = function.__code__
    if code.co_argcount != 1 or code.co_kwonlyargcount:
        return None
    try:
        instructions = list(dis.get_instructions(code))
    except ValueError:
        # dis prints the constants, and Python refuses to print integers of thousands of digits.
        return None
    if len(instructions) > _MAX_INSTRUCTIONS:
        return None
    stack: list[str] = []
    for instruction in instructions:
        if not _apply(instruction, code, argument, stack):
            return None
    return stack[0] if len(stack) == 1 else None


def _apply(instruction: dis.Instruction, code: CodeType, argument: str, stack: list[str]) -> bool:
    """Apply an instruction to a stack of expressions. Return False if it is unknown."""
    name, value = instruction.opname, instruction.argval
    match name:
        case "LOAD_FAST" if value == code.co_varnames[0]:
            stack.append(argument)
        case "LOAD_FAST_LOAD_FAST" if value == (code.co_varnames[0],) * 2:
            stack += (argument, argument)
        case "LOAD_CONST" | "RETURN_CONST" if type(value) in _LITERALS:
            # Operators bind more tightly than the sign of a number.
            stack.append(f"({value})" if type(value) is int and value < 0 else repr(value))
        case "BINARY_SUBSCR" if len(stack) > 1:
            index = stack.pop()
            stack[-1] = f"{stack[-1]}[{index}]"
        case "BINARY_OP" if len(stack) > 1 and instruction.argrepr in _OPERATORS:
            right = stack.pop()
            stack[-1] = f"({stack[-1]} {instruction.argrepr} {right})"
        case _:
            return name in _WITHOUT_EFFECT
    return True
