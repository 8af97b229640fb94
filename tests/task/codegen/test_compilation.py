"""Generated functions show their text in tracebacks and debuggers, and leave nothing behind."""

from __future__ import annotations

import gc
import inspect
import io
import linecache
import pdb  # noqa: T100  # the debugger is under test
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from firesteel.errors import UserFunctionError
from firesteel.task.codegen.compilation import define
from firesteel.task.codegen.fusion import FusedNode, Step, StepKind, fuse
from firesteel.task.record_batch import RecordBatch
from firesteel.usercode.failures import user_function_error


def texts() -> set[str]:
    gc.collect()
    return {name for name in linecache.cache if name.startswith("<firesteel ")}


def test_the_same_text_has_the_same_readable_file_name_and_code() -> None:
    source = "def double(value):\n    return 2 * value + offset\n"
    one = define(source, "test loop", {"offset": 1})
    two = define(source, "test loop", {"offset": 2})
    assert (one(5), two(5)) == (11, 12)
    assert one.__code__ is two.__code__
    assert one.__code__.co_filename == "<firesteel test loop 6dfd0c5981b8>"
    assert inspect.getsource(one) == source


def test_linecache_keeps_the_text_when_it_checks_for_changed_files() -> None:
    function = define("def kept():\n    return 'kept'\n", "test loop", {})
    linecache.checkcache()
    assert inspect.getsource(function) == "def kept():\n    return 'kept'\n"


def test_the_texts_of_many_loops_do_not_pile_up() -> None:
    before = len(texts())
    for number in range(1_000):
        define(f"def numbered():\n    return {number}\n", "test loop", {})
    # The last ones stay compiled for other subtasks of their job.
    assert len(texts()) - before <= 128


def test_a_text_stays_as_long_as_a_function_is_in_use() -> None:
    used = define("def used():\n    return 'used'\n", "test loop", {})
    for number in range(200):
        define(f"def pushed_out():\n    return {-number}\n", "test loop", {})
    again = define("def used():\n    return 'used'\n", "test loop", {})
    assert again.__code__ is used.__code__
    del again
    assert used.__code__.co_filename in texts()
    assert inspect.getsource(used) == "def used():\n    return 'used'\n"


def parse(text: str) -> int:
    return int(text)


def failure_of(process: Callable[..., None], *arguments: Any) -> UserFunctionError:
    with pytest.raises(UserFunctionError) as raised:
        process(*arguments)
    return raised.value


def fused_parser() -> Callable[..., None]:
    step = Step(
        StepKind.MAP,
        parse,
        lambda error, record: user_function_error(error, "parser", parse, [record], None),
    )
    return fuse(FusedNode(step, emit=lambda *_: None))


def test_a_traceback_shows_the_line_of_the_loop_and_the_users_only_the_users_function() -> None:
    error = failure_of(fused_parser(), RecordBatch(["1", "two"]))
    assert error.__cause__ is not None
    shown = "".join(traceback.format_exception(error.__cause__))
    assert 'File "<firesteel fused loop ' in shown
    assert "    record0 = function0(record)\n" in shown
    assert "    return int(text)\n" in shown
    # The user reads the user's own lines.
    assert error.traceback_text.splitlines()[:3] == [
        "Traceback (most recent call last):",
        f'  File "{__file__}", line {parse.__code__.co_firstlineno + 1}, in parse',
        "    return int(text)",
    ]
    assert "<firesteel" not in str(error)
    assert error.file == __file__


def test_a_debugger_lists_the_loop_with_its_variables() -> None:
    error = failure_of(fused_parser(), RecordBatch(["1", "two"]))
    assert error.__cause__ is not None
    screen = io.StringIO()
    debugger = pdb.Pdb(
        stdin=io.StringIO("up\nlist\nlonglist\np record\nquit\n"), stdout=screen, nosigint=True
    )
    debugger.reset()
    debugger.interaction(None, error.__cause__.__traceback__)
    shown = screen.getvalue()
    assert shown.count("record0 = function0(record)") == 3, "up, list, longlist"
    assert "def fused_loop(values, timestamps):" in shown
    assert "'two'" in shown
