"""Objects that tasks cannot import travel by value, including those made by functools."""

import functools
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

from firesteel.usercode import value_pickler

MAIN = """
import functools, sys
from firesteel.usercode import value_pickler

@functools.lru_cache(maxsize=3, typed=True)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

fib.note = "kept"

@functools.cache
def double(x):
    return 2 * x

@functools.singledispatch
def kind(x):
    return "other"

@kind.register
def _(x: int):
    return "int"

@kind.register(list)
def _(x):
    return [kind(item) for item in x]

class Circle:
    radius = 2

    @functools.cached_property
    def area(self):
        return 3 * self.radius**2

    @functools.lru_cache
    def scaled(self, by):
        return by * self.area

    @functools.singledispatchmethod
    def times(self, by):
        return None

    @times.register
    def _(self, by: int):
        return by * self.radius

def job():
    circle = Circle()
    return {
        "fib": [fib(20), fib.cache_parameters(), fib.cache_info().maxsize, fib.note],
        "double": [double(4), double(4), double.cache_info().hits],
        "kind": kind([1, "a"]),
        "circle": [circle.area, circle.scaled(2), circle.times(5)],
    }

sys.stdout.buffer.write(value_pickler.dumps(job))
"""


def test_cached_and_dispatched_functions_of_main_work_in_another_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(MAIN)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pickled = subprocess.run(
        [sys.executable, script], env=environment, stdout=subprocess.PIPE, check=True
    ).stdout
    loads = "import json, pickle, sys; print(json.dumps(pickle.load(sys.stdin.buffer)()))"
    answer = subprocess.run(
        [sys.executable, "-c", loads],
        env=environment,
        input=pickled,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    assert json.loads(answer) == {
        "fib": [6765, {"maxsize": 3, "typed": True}, 3, "kept"],
        "double": [8, 8, 1],
        "kind": ["int", "other"],
        "circle": [12, 24, 10],
    }


@functools.lru_cache
def importable(x: int) -> int:
    return x


@functools.singledispatch
def dispatching(x: object) -> object:
    return x


def test_what_can_be_imported_is_named_and_stays_the_same_object() -> None:
    assert pickle.loads(value_pickler.dumps(importable)) is importable
    assert pickle.loads(value_pickler.dumps(dispatching)) is dispatching


def test_a_local_cache_travels_empty_with_what_it_closes_over() -> None:
    offset = 5

    @functools.cache
    def shifted(x: int) -> int:
        return x + offset

    shifted(1)
    arrived = pickle.loads(value_pickler.dumps(shifted))
    assert arrived is not shifted
    assert (arrived(1), arrived.cache_info().hits) == (6, 0)
