"""The public API, the examples in its docstrings, and the names that have none.

The pages in docs/reference define the public API: the classes and functions they document, and the
public members of these classes. ``python -m tests.docs.docstrings`` updates the list of names that
still lack an example.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, ModuleType
from typing import Any

import firesteel
from firesteel.datastream import StreamExecutionEnvironment
from tools.manual import public_api

WITHOUT_EXAMPLES = Path(__file__).with_name("without_examples.txt")

# An example may use the public names of these packages, and the names that its module defines,
# without importing them.
_IMPORTED = (
    "firesteel.common",
    "firesteel.datastream",
    "firesteel.datastream.functions",
    "firesteel.datastream.state",
    "firesteel.datastream.window",
)
_PUBLIC = (
    "firesteel.common.",
    "firesteel.connectors.",
    "firesteel.datastream.",
    "firesteel.formats.",
    "firesteel.metrics.",
    "firesteel.state_processor.",
    "firesteel.table.",
    "firesteel.testing.",
)
# A docstring that asks for the Spark session runs on Spark.
_NEEDS_SPARK = "get_spark_session"


# Examples


@cache
def imported_names() -> dict[str, Any]:
    modules = [importlib.import_module(name) for name in _IMPORTED]
    return {name: getattr(module, name) for module in modules for name in module.__all__}


def modules_with_examples() -> list[str]:
    """Modules of Firesteel whose source has a doctest."""
    return [
        module.name
        for module in pkgutil.walk_packages(firesteel.__path__, "firesteel.")
        if ">>> " in _source(module)
    ]


def _source(module: pkgutil.ModuleInfo) -> str:
    spec = module.module_finder.find_spec(module.name, None)
    return "" if spec is None or spec.origin is None else Path(spec.origin).read_text()


def examples(module: str) -> list[doctest.DocTest]:
    """The doctests of a module, each with an environment of its own."""
    imported = importlib.import_module(module)
    namespace = {**imported_names(), **_known_in(imported), "__name__": "__main__"}
    found = doctest.DocTestFinder().find(imported, globs=namespace)
    for example in found:
        example.globs["env"] = StreamExecutionEnvironment().set_parallelism(1)
    return [example for example in found if example.examples]


def _known_in(module: ModuleType) -> dict[str, Any]:
    """In a public module the names it defines; in an internal one, also those it imports."""
    names = vars(module)
    if not module.__name__.startswith(_PUBLIC):
        return dict(names)
    return {
        name: item
        for name, item in names.items()
        if getattr(item, "__module__", None) == module.__name__
    }


def needs_spark(example: doctest.DocTest) -> bool:
    return _NEEDS_SPARK in (example.docstring or "")


def failures(example: doctest.DocTest) -> str:
    """Runs an example in a new directory; the report of what differs, or an empty text."""
    report: list[str] = []
    with TemporaryDirectory() as directory, contextlib.chdir(directory):
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=report.append)
    return "".join(report)


# The public API


@dataclass(frozen=True, slots=True)
class PublicName:
    """A public class, function or member. ``path`` names where it is defined."""

    path: str
    has_docstring: bool
    has_example: bool

    @property
    def is_documented(self) -> bool:
        return self.has_docstring and self.has_example


def undocumented_names() -> set[str]:
    """Public names that lack a docstring or an example."""
    return {name.path for name in public_names() if not name.is_documented}


def public_names() -> Collection[PublicName]:
    found: dict[str, PublicName] = {}
    for path in public_api.documented_paths():
        for name in _names_of(_resolve(path)):
            known = found.get(name.path)
            if known is None or not known.is_documented:
                found[name.path] = name
    return found.values()


def _names_of(item: Any, outer_examples: str = "") -> Iterator[PublicName]:
    """A class or function, and its members. A nested class shares the examples around it."""
    doc = inspect.getdoc(item) or ""
    path = f"{item.__module__}.{item.__qualname__}"
    yield PublicName(path, bool(doc), ">>>" in doc or bool(outer_examples))
    if not inspect.isclass(item):
        return
    examples_of_class = outer_examples + "".join(
        line
        for base in item.__mro__
        for line in (inspect.getdoc(base) or "").splitlines(keepends=True)
        if line.startswith((">>>", "..."))
    )
    for name in dir(item):
        if name.startswith("_"):
            continue
        definer = next(base for base in item.__mro__ if name in vars(base))
        if definer.__module__.startswith("firesteel."):
            yield from _member(item, definer, name, examples_of_class)


def _member(item: type, definer: type, name: str, examples_of_class: str) -> Iterator[PublicName]:
    member = inspect.getattr_static(definer, name)
    if inspect.isclass(member):
        if member.__module__ == definer.__module__:
            yield from _names_of(member, examples_of_class)
        return
    if not isinstance(member, (FunctionType, staticmethod, classmethod, property)):
        return
    doc = inspect.getdoc(getattr(item, name)) or ""
    path = f"{definer.__module__}.{definer.__qualname__}.{name}"
    used = re.search(rf"(\.|\bdef ){name}\b", examples_of_class)
    yield PublicName(path, bool(doc), ">>>" in doc or used is not None)


def _resolve(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


# The list of names without an example


def excused() -> dict[str, str]:
    """Names that may lack an example, with the reason if there is one."""
    entries = [line.partition("  # ") for line in WITHOUT_EXAMPLES.read_text().splitlines() if line]
    return {name: reason for name, _, reason in entries if not name.startswith("#")}


def update_excused() -> None:
    known = excused()
    lines = [
        f"{path}  # {reason}" if (reason := known.get(path)) else path
        for path in sorted(undocumented_names())
    ]
    header = [line for line in WITHOUT_EXAMPLES.read_text().splitlines() if line.startswith("# ")]
    WITHOUT_EXAMPLES.write_text("\n".join([*header, *lines]) + "\n")


if __name__ == "__main__":
    update_excused()
