"""Plain functions as text that says the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.task.codegen.expressions import expression_of

_NUMBERS = st.integers(-(10**12), 10**12)
_OPERATORS = ("+", "-", "*", "//", "%", "&", "|", "^")
_TERMS = st.recursive(
    st.one_of(st.just("x"), st.integers(-9, 9).map(lambda n: f"({n})")),
    lambda inner: st.builds(
        lambda left, operator, right: f"({left} {operator} {right})",
        inner,
        st.sampled_from(_OPERATORS),
        inner,
    ),
    max_leaves=6,
)


def result(function: Callable[[Any], Any], value: Any) -> Any:
    try:
        return function(value)
    except ArithmeticError as error:
        return type(error)


@given(_TERMS, _NUMBERS)
def test_an_expression_has_the_result_of_its_function(term: str, number: int) -> None:
    function = eval(f"lambda x: {term}")
    expression = expression_of(function, "record")
    if expression is None:
        # Newer versions of Python have instructions for two loads at once.
        assert term.count("x") > 1
    else:
        assert result(eval(f"lambda record: {expression}"), number) == result(function, number)


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda order: order[0], ("a", 1)),
        (lambda order: order[-1], ("a", 1)),
        (lambda order: order["user"]["id"], {"user": {"id": 7}}),
        (lambda n: n % 1000, 123_456),
        (lambda n: (-2) ** n, 4),
        (lambda n: n / 7, 3),
        (lambda n: n, "itself"),
        (lambda n: None, 1),
        (lambda text: text + "'\\n", "a"),
    ],
)
def test_fields_operators_and_constants_are_written_as_they_are_meant(
    function: Callable[[Any], Any], value: Any
) -> None:
    expression = expression_of(function, "record")
    assert expression is not None
    assert eval(expression, {"record": value}) == function(value)


def test_a_long_function_stays_a_function() -> None:
    assert expression_of(eval("lambda x: x" + " + 1" * 50), "record") is None
