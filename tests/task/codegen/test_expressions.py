"""A function and its expression have the same result, on every version of Python.

``make test`` runs this file on each version that it finds of those that pyproject.toml names.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import sys
import textwrap
import tomllib
import typing
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from firesteel.task.codegen import expressions
from firesteel.task.codegen.expressions import READ_VERSIONS, expression_of

REPOSITORY = Path(__file__).parents[3]
WORKFLOW = REPOSITORY / ".github/workflows/test.yml"
VERSIONS = [f"{major}.{minor}" for major, minor in READ_VERSIONS]


def test_the_versions_that_are_read_are_those_that_the_project_names() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: 3."
    named = [c.removeprefix(prefix) for c in project["classifiers"] if c.startswith(prefix)]
    assert [f"3.{minor}" for minor in named] == VERSIONS


@pytest.mark.skipif(not WORKFLOW.exists(), reason="a source distribution has no workflows")
def test_the_workflow_tests_the_versions_that_are_read() -> None:
    assert f"python: {json.dumps(VERSIONS)}" in WORKFLOW.read_text()


def test_on_an_unknown_version_functions_have_no_expression(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expressions, "READ_VERSIONS", ((3, 10),))
    assert expression_of(lambda n: n % 10, "record") is None


def outcome(function: Callable[[Any], Any], value: Any) -> tuple[Any, ...]:
    """The result with its type, because 1, 1.0 and True are equal; or the type of the error."""
    try:
        result = function(value)
    except Exception as error:
        return (type(error),)
    return (type(result), result)


def evaluated(expression: str) -> Callable[[Any], Any]:
    made: Callable[[Any], Any] = eval(f"lambda record: {expression}")
    return made


OPERATORS = ("+", "-", "*", "//", "%", "&", "|", "^")
TERMS = st.recursive(
    st.one_of(st.just("x"), st.integers(-300, 300).map(lambda n: f"({n})")),
    lambda inner: st.builds(
        lambda left, operator, right: f"({left} {operator} {right})",
        inner,
        st.sampled_from(OPERATORS),
        inner,
    ),
    max_leaves=6,
)


@given(TERMS, st.integers(-(10**12), 10**12))
@example("(x + x)", 3)
@example("(x * (x - x))", 3)
@example("(-2)", 3)
def test_operators_and_constants_have_an_expression_with_the_same_result(
    term: str, number: int
) -> None:
    function = eval(f"lambda x: {term}")
    expression = expression_of(function, "record")
    assert expression is not None
    assert outcome(evaluated(expression), number) == outcome(function, number)


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda order: order[0], ("a", 1)),
        (lambda order: order[-1], ("a", 1)),
        (lambda order: order[order[0]], (1, "a")),
        (lambda order: order["user"]["id"], {"user": {"id": 7}}),
        (lambda n: n % 1000, 123_456),
        (lambda n: (-2) ** n, 4),
        (lambda n: n / 7, 3),
        (lambda n: n << 3 >> 1, 3),
        (lambda n: n, "itself"),
        (lambda n: None, 1),
        (lambda n: True, 1),
        (lambda n: 10**20, 1),
        (lambda text: text + "'\\n\ud800", "a"),
    ],
)
def test_fields_operators_and_constants_are_written_as_they_are_meant(
    function: Callable[[Any], Any], value: Any
) -> None:
    expression = expression_of(function, "record")
    assert expression is not None
    assert outcome(evaluated(expression), value) == outcome(function, value)


# Any Python: most of it has no expression, and nothing may have a wrong one.
LEAVES = st.sampled_from(
    ["x", "y", "0", "1", "-1", "2.5", "1j", "'a'", "b'a'", "None", "True", "...", "()", "(1, 'a')"]
)
TEMPLATES = (
    *(f"({{}} {operator} {{}})" for operator in (*OPERATORS, "/", "@", "<<", ">>")),
    *(f"({{}} {operator} {{}})" for operator in ("<", "==", "is", "in", "not in", "and", "or")),
    "({} if {} else {})",
    "(1 < {} < {})",
    "{}[{}]",
    "{}[{}:{}]",
    "{}[::{}]",
    "(-{})",
    "(~{})",
    "(not {})",
    "({}, {})",
    "({},)",
    "[{}, {}]",
    "[*{}, {}]",
    "{{{}: {}}}",
    "{{{}, {}}}",
    "({}.real)",
    "str({})",
    "len({})",
    "[z for z in ({}, {})]",
    "[x for x in ({}, 1)]",
    "f'{{ {} }}'",
    "f'{{x!r:>{{ {} }}}}'",
    "(x := {})",
    "((x := {}), {})[1]",
    "((y := {}) and {})",
    "(lambda: {})()",
    "(lambda x: {})({})",
    "(yield {})",
    "(await {})",
)
ANY_EXPRESSION = st.recursive(
    LEAVES,
    lambda inner: st.sampled_from(TEMPLATES).flatmap(
        lambda template: st.tuples(*[inner] * template.count("{}")).map(
            lambda parts: template.format(*parts)
        )
    ),
    max_leaves=5,
)
BODIES = (
    "return {}",
    "y = {}\nreturn y",
    "x = {}\nreturn x",
    "x += {}\nreturn x",
    "x[0] = {}\nreturn x",
    "del x\nreturn {}",
    "{}\nreturn x",
    "{}",
    "if {}:\n    return x\nreturn 1",
    "while {}:\n    return x\nreturn 1",
    "for z in {}:\n    return z",
    "try:\n    return {}\nexcept TypeError:\n    return x",
    "try:\n    return x\nfinally:\n    {}",
    "with {} as z:\n    return z",
    "assert {}\nreturn x",
    "global y\nreturn {}",
    "raise {}",
    "y, *z = {}\nreturn x",
    "match {}:\n    case [z, *_]:\n        return z\nreturn x",
    "def inner():\n    return x\nreturn {}",
)
SIGNATURES = (
    "x",
    "x, /",
    "x, y=2",
    "x, *y",
    "x, **y",
    "x, *, y=2",
    "y, x=1",
    "*x",
    "x=0",
)
VALUES = st.one_of(
    st.integers(-5, 5),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.none(),
    st.tuples(st.integers(-2, 2), st.text(max_size=2)),
    st.dictionaries(st.integers(-1, 1), st.integers(0, 9), max_size=2),
)


def is_valid(source: str) -> bool:
    try:
        compile(source, "<test>", "exec")
    except SyntaxError:
        return False
    return True


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@given(
    expression=ANY_EXPRESSION,
    body=st.sampled_from(BODIES),
    signature=st.sampled_from(SIGNATURES),
    prefix=st.sampled_from(["", "async "]),
    value=VALUES,
)
@example("x", "x = {}\nreturn x", "x, y=2", "", 1)
@example("(x, 1)[0]", "return {}", "x", "", 1)
def test_any_function_has_no_expression_or_one_with_the_same_result(
    expression: str, body: str, signature: str, prefix: str, value: Any
) -> None:
    source = f"{prefix}def function({signature}):\n" + textwrap.indent(
        body.format(expression), "    "
    )
    if not is_valid(source):
        return
    names: dict[str, Any] = {"y": 3}
    exec(source, names)
    found = expression_of(names["function"], "record")
    if found is not None:
        names_used = {node.id for node in ast.walk(ast.parse(found)) if isinstance(node, ast.Name)}
        assert names_used <= {"record"}
        assert outcome(evaluated(found), value) == outcome(names["function"], value)


@pytest.mark.parametrize("module", [dataclasses, inspect, json, textwrap, typing], ids=str)
def test_no_function_of_the_standard_library_confuses_the_reader(module: Any) -> None:
    functions = [value for value in vars(module).values() if isinstance(value, FunctionType)]
    for owner in vars(module).values():
        if isinstance(owner, type):
            functions += [
                value for value in vars(owner).values() if isinstance(value, FunctionType)
            ]
    assert functions
    for function in functions:
        found = expression_of(function, "record")
        if found is not None:
            assert outcome(evaluated(found), 1) == outcome(function, 1)


def test_a_function_that_ran_often_or_under_a_debugger_has_the_same_expression() -> None:
    def function(order: Any) -> Any:
        return order[0] % 10 + order[0]

    expected = expression_of(function, "record")
    assert expected == "((record[0] % 10) + record[0])"
    for _ in range(1_000):
        # By now the interpreter has replaced instructions with specialized ones.
        function((7,))
    assert expression_of(function, "record") == expected

    def trace(*_: Any) -> Any:
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function((7,))
        assert expression_of(function, "record") == expected
    finally:
        sys.settrace(before)


def test_a_long_function_stays_a_function() -> None:
    assert expression_of(eval("lambda x: x" + " + 1" * 50), "record") is None


def test_an_integer_that_python_does_not_print_stays_in_its_function() -> None:
    assert expression_of(eval(f"lambda x: x % 0x{'f' * 5_000}"), "record") is None
