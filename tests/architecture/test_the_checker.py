"""The reader of imports finds every form of import."""

from __future__ import annotations

from tests.architecture.imports import Import, When, imports_in, room
from tests.architecture.test_imports import is_allowed

_SOURCE = """
import os.path
from typing import TYPE_CHECKING
from firesteel.task import slot
if TYPE_CHECKING:
    import pyspark
else:
    import json
try:
    from firesteel.spark.session import start
except ImportError:
    pass
class A:
    import firesteel.master
    def method(self):
        if self:
            from firesteel.master.launcher import launch
"""


def test_every_kind_of_import_is_found() -> None:
    found = [(i.imported, i.when) for i in imports_in(_SOURCE, "firesteel.graph.x", "x.py")]
    assert found == [
        ("os.path", When.LOADING),
        ("typing.TYPE_CHECKING", When.LOADING),
        ("firesteel.task.slot", When.LOADING),
        ("pyspark", When.NEVER),
        ("json", When.LOADING),
        ("firesteel.spark.session.start", When.LOADING),
        ("firesteel.master", When.LOADING),
        ("firesteel.master.launcher.launch", When.CALLING),
    ]


def test_rooms() -> None:
    found = Import("firesteel.graph.levels", "firesteel.errors.FiresteelError", When.LOADING, "")
    assert (found.from_room, found.to_room) == ("graph", "errors")
    assert room("pyspark.sql.types") == "pyspark"
    assert room("firesteel") == "firesteel"


def test_a_lazy_import_counts_as_an_import() -> None:
    lazy = Import("firesteel.graph.x", "firesteel.task.slot", When.CALLING, "")
    assert not is_allowed(lazy, "graph", "task")
    assert is_allowed(lazy, "task", "graph")


def test_a_call_upward_is_allowed_only_inside_a_function() -> None:
    environment = "datastream.stream_execution_environment"
    for when in When:
        found = Import("", "", when, "")
        assert is_allowed(found, environment, "spark") == (when is When.CALLING)
