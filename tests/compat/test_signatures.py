from __future__ import annotations

from typing import Any

import pytest

from tests.compat.signatures import difference, parse


def test_parsing() -> None:
    text = "static (a: Dict[str, 'X, Y'] = <K.NONE: (1,)>, *b: int, c='x=y', **d) -> List[int]"
    assert [(p.name, p.optional, p.stars) for p in parse(text)] == [
        ("a", True, ""),
        ("b", False, "*"),
        ("c", True, ""),
        ("d", False, "**"),
    ]


def test_java_parameters_are_known() -> None:
    text = "(self, j_x=None, y: Union[str, py4j.java_gateway.JavaObject] = None, z=1)"
    assert [p.name for p in parse(text) if not p.jvm_only] == ["z"]


def _plain(a: Any, b: Any = None) -> None: ...
def _more(a: Any, b: Any = None, *, extra: Any = None) -> None: ...
def _needy(a: Any, b: Any, c: Any) -> None: ...
def _swapped(b: Any, a: Any = None) -> None: ...
def _many(a: Any, *others: Any) -> None: ...


@pytest.mark.parametrize(
    ("signature", "function", "answer"),
    [
        ("(a, b=None)", _plain, None),
        ("(a, b=None)", _more, None),
        ("(a, b)", _plain, None),
        ("(self, j_object, a)", _plain, None),
        ("(a, b=None)", _needy, "parameter 'b' has no default"),
        ("(a, b)", _needy, "parameter 'c' is required, and PyFlink has none of that name"),
        ("(a, b=None)", _swapped, "parameter 0 is 'b', in PyFlink 'a'"),
        ("(a, b, c)", _plain, "parameter 'c' is missing"),
        ("(a, *rest)", _plain, "*rest is missing"),
        ("(a, *rest)", _many, None),
    ],
)
def test_differences(signature: str, function: Any, answer: str | None) -> None:
    assert difference(parse(signature), function) == answer
