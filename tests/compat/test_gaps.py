"""Errors for names of PyFlink that Firesteel does not have."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from firesteel.errors import NeverSupportedError, NotYetSupportedError
from firesteel.gaps import find_gap, gap_importer


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
    ("module", "name"), [("functions", "SourceFunction"), ("connectors.kafka", "KafkaSink")]
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
    assert find_gap("firesteel.datastream.connectors", "KafkaSink") is not None
    assert find_gap("firesteel.datastream", "KafkaSink") is None


def test_a_real_import_statement_shows_the_reason() -> None:
    with pytest.raises(ImportError, match="comes in a later version"):
        from firesteel.datastream.connectors.pulsar import PulsarSource  # type: ignore[import-not-found]  # noqa: F401


def test_a_module_of_gaps_needs_no_file() -> None:
    import firesteel.datastream.formats.json as formats  # type: ignore[import-not-found]

    assert not hasattr(formats, "__file__")
    with pytest.raises(NotYetSupportedError, match="JsonRowSerializationSchema"):
        formats.JsonRowSerializationSchema


def test_a_module_that_pyflink_does_not_have_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        import firesteel.datastream.connectors.nothing  # type: ignore[import-not-found]  # noqa: F401
