"""Errors for names of PyFlink that Firesteel does not have."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import pickle
import sys
from typing import Any

import pytest

from firesteel.errors import NeverSupportedError, NotYetSupportedError
from firesteel.gaps import GAPS, GapFinder, find_gap, gap_importer, install_finder


def _error(module: str, name: str) -> Any:
    with pytest.raises(ImportError) as caught:
        gap_importer(module)(name)
    return caught.value


def test_the_error_names_what_is_missing_why_and_what_to_do() -> None:
    error = _error("firesteel.datastream.connectors.pulsar", "PulsarSource")
    assert isinstance(error, NotYetSupportedError)
    assert str(error).startswith(
        "firesteel.datastream.connectors.pulsar.PulsarSource is not yet supported by Firesteel: "
        "this connector comes in a later version"
    )


def test_never_is_another_error() -> None:
    error = _error("firesteel.datastream.functions", "SourceFunction")
    assert isinstance(error, NeverSupportedError)
    assert not isinstance(error, NotYetSupportedError)
    assert "firesteel.datastream.connectors.base.Source" in str(error)


@pytest.mark.parametrize(
    ("module", "name"), [("functions", "SourceFunction"), ("connectors.pulsar", "PulsarSink")]
)
def test_the_error_pickles(module: str, name: str) -> None:
    error = _error(f"firesteel.datastream.{module}", name)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.name == error.name


def test_a_package_answers_for_the_modules_in_it() -> None:
    here = find_gap("firesteel.datastream.functions", "SourceFunction")
    assert here is not None
    assert find_gap("firesteel.datastream", "SourceFunction") is here
    assert find_gap("firesteel", "SourceFunction") is None
    assert find_gap("firesteel.datastream.connectors", "PulsarSink") is not None
    assert find_gap("firesteel.datastream", "PulsarSink") is None


def test_a_real_import_statement_shows_the_reason() -> None:
    with pytest.raises(ImportError, match="comes in a later version"):
        from firesteel.datastream.connectors.pulsar import PulsarSource  # type: ignore[import-not-found]  # noqa: F401


def test_a_module_of_gaps_needs_no_file() -> None:
    from firesteel.datastream.connectors import pulsar

    assert not hasattr(pulsar, "__file__")
    with pytest.raises(NotYetSupportedError, match="PulsarSource"):
        pulsar.PulsarSource


def test_a_module_that_pyflink_does_not_have_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        import firesteel.datastream.connectors.nothing  # type: ignore[import-not-found]  # noqa: F401


@pytest.mark.parametrize("module", sorted(GAPS))
def test_every_module_with_gaps_can_be_imported(module: str) -> None:
    imported = importlib.import_module(f"firesteel.{module}")
    for gap in GAPS[module]:
        for name in gap.names:
            with pytest.raises(ImportError, match=name):
                getattr(imported, name)


def test_specs_of_modules() -> None:
    module = importlib.util.find_spec("firesteel.datastream.connectors.pulsar")
    assert module is not None
    assert isinstance(module.loader, GapFinder)
    assert module.submodule_search_locations is None
    real = importlib.util.find_spec("firesteel.datastream.connectors.kafka")
    assert real is not None
    assert not isinstance(real.loader, GapFinder), "a module with a file comes from the file"
    for name in ("firesteel.nothing", "datastream.formats", "firesteel.datastream.formats.xml"):
        assert GapFinder().find_spec(name) is None


def test_the_finder_is_asked_last_and_once() -> None:
    install_finder()
    assert [isinstance(finder, GapFinder) for finder in sys.meta_path].count(True) == 1
    files = sys.meta_path.index(importlib.machinery.PathFinder)
    assert not any(isinstance(finder, GapFinder) for finder in sys.meta_path[:files])


def test_a_pickle_that_names_a_gap_shows_the_reason() -> None:
    with pytest.raises(NotYetSupportedError, match="comes in a later version"):
        pickle.loads(b"cfiresteel.datastream.connectors.pulsar\nPulsarSink\n.")


def test_star_imports_of_a_module_of_gaps_import_nothing() -> None:
    names: dict[str, object] = {}
    exec("from firesteel.datastream.connectors.pulsar import *", names)
    assert set(names) == {"__builtins__"}
