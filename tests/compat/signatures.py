"""Reads PyFlink's signatures, which are text, and compares them with ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_OPENING, _CLOSING = "([{<", ")]}>"


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    annotation: str = ""
    optional: bool = False
    # "" for an ordinary one, "*" and "**" for the collecting ones
    stars: str = ""

    @property
    def jvm_only(self) -> bool:
        """True if a program must pass a Java object, or the name of a Java class."""
        kinds = [self.annotation]
        if self.annotation.startswith("Union["):
            kinds = list(_split(self.annotation.removeprefix("Union[").removesuffix("]")))
        java = [kind for kind in kinds if "JavaObject" in kind]
        others = set(kinds) - {*java, "str", "None", "NoneType"}
        return self.name.startswith("j_") or bool(java and not others)


def parse(signature: str) -> list[Parameter]:
    """Return the parameters of a signature such as ``static (a: int, *b, c=1) -> str``.

    >>> [p.name for p in parse("static (a: Dict[str, int] = (1, 2), *b) -> 'X'")]
    ['a', 'b']
    """
    inside = signature[signature.index("(") + 1 : _closing_parenthesis(signature)]
    parameters = [_parameter(text) for text in _split(inside) if text not in {"*", "/"}]
    return [p for p in parameters if p.name not in {"self", "cls"}]


def _closing_parenthesis(signature: str) -> int:
    depth = 0
    for index, character in enumerate(signature):
        depth += (character == "(") - (character == ")")
        if depth == 0 and character == ")":
            return index
    raise ValueError(signature)


def _split(text: str) -> Iterator[str]:
    depth, begin, quote = 0, 0, ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and depth == 0:
            yield text[begin:index].strip()
            begin = index + 1
    if text[begin:].strip():
        yield text[begin:].strip()


def _parameter(text: str) -> Parameter:
    bare = text.lstrip("*")
    stars = text[: len(text) - len(bare)]
    end = min((i for i in (bare.find(":"), bare.find("=")) if i >= 0), default=len(bare))
    rest = bare[end:]
    annotation = rest[1:].strip() if rest.startswith(":") else ""
    return Parameter(bare[:end].strip(), annotation, "=" in rest, stars)


def difference(expected: list[Parameter], actual: Callable[..., Any]) -> str | None:
    """Return why a call written for ``expected`` would not fit ``actual``. None: it fits."""
    ours = [
        p for p in inspect.signature(actual).parameters.values() if p.name not in {"self", "cls"}
    ]
    kinds = {p.kind for p in ours}
    collects_all = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds
    if collects_all:
        return None
    ordinary = [p for p in ours if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    wanted = [p for p in expected if not p.jvm_only]
    for position, parameter in enumerate(p for p in wanted if not p.stars):
        if position >= len(ordinary):
            return f"parameter {parameter.name!r} is missing"
        found = ordinary[position]
        if found.name != parameter.name:
            return f"parameter {position} is {found.name!r}, in PyFlink {parameter.name!r}"
        if parameter.optional and found.default is inspect.Parameter.empty:
            return f"parameter {parameter.name!r} has no default"
    for parameter in wanted:
        kind = {"*": inspect.Parameter.VAR_POSITIONAL, "**": inspect.Parameter.VAR_KEYWORD}.get(
            parameter.stars
        )
        if kind is not None and kind not in kinds:
            return f"{parameter.stars}{parameter.name} is missing"
    return _surplus(ordinary[sum(not p.stars for p in wanted) :], ours)


def _surplus(rest: list[inspect.Parameter], ours: list[inspect.Parameter]) -> str | None:
    keyword_only = [p for p in ours if p.kind is inspect.Parameter.KEYWORD_ONLY]
    for found in [*rest, *keyword_only]:
        if found.default is inspect.Parameter.empty:
            return f"parameter {found.name!r} is required, and PyFlink has none of that name"
    return None
