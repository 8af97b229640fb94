"""Checks each claim of the ledger against the package."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from fnmatch import fnmatchcase

import pytest

from firesteel.gaps import GAPS
from tests.compat import ledger
from tests.compat.ledger import PROMISED_ERROR, RULES, Entry, Evidence, Status, entries
from tests.compat.signatures import difference, parse


def _with(*evidence: Evidence) -> list[Entry]:
    return [entry for entry in entries() if entry.evidence in evidence]


def _by_path(entry: Entry) -> str:
    return entry.path


def test_every_name_of_pyflink_has_an_entry() -> None:
    api = json.loads(ledger.API_FILE.read_text())
    paths = {entry.path for entry in entries()}
    expected = {
        f"{module}.{name}{'.' * bool(member)}{member}"
        for module, names in api.items()
        for name, facts in names.items()
        for member in ["", *(facts.get("members", {}) if facts["defined_in"] == module else {})]
    }
    assert paths == expected


@pytest.mark.parametrize("entry", _with(Evidence.USE), ids=_by_path)
def test_what_works_is_there_and_takes_the_same_parameters(entry: Entry) -> None:
    found = ledger.owner(entry)
    if entry.member == "__init__" and not entry.form.startswith("("):
        return
    if entry.member:
        assert hasattr(found, entry.member), f"{entry.path} is missing"
        found = getattr(found, entry.member)
    if entry.form == "class":
        assert inspect.isclass(found)
    elif entry.form != "attribute":
        assert difference(parse(entry.form), found) is None, f"PyFlink has {entry.form}"


@pytest.mark.parametrize("entry", _with(Evidence.REFUSED), ids=_by_path)
def test_what_pyflink_refuses_is_refused(entry: Entry) -> None:
    error = ledger.call_blank(entry)
    assert error is not None
    assert not isinstance(error, TypeError)


@pytest.mark.parametrize(
    "entry", [entry for entry in _with(Evidence.IMPORT) if not entry.member], ids=_by_path
)
def test_importing_a_gap_explains_it(entry: Entry) -> None:
    module = importlib.import_module(entry.our_module)
    with pytest.raises(PROMISED_ERROR[entry.status], match=re.escape(entry.reason())) as caught:
        getattr(module, entry.name)
    assert ImportError in caught.type.__mro__
    assert entry.reason()


@pytest.mark.parametrize("entry", _with(Evidence.CALL), ids=_by_path)
def test_calling_a_gap_explains_it(entry: Entry) -> None:
    error = ledger.call_blank(entry)
    assert isinstance(error, PROMISED_ERROR[entry.status]), repr(error)
    assert entry.reason()
    assert entry.member in str(error) or entry.name in str(error)


@pytest.mark.parametrize("entry", _with(Evidence.ABSENT), ids=_by_path)
def test_inner_helpers_are_absent(entry: Entry) -> None:
    assert not hasattr(ledger.owner(entry), entry.member)
    assert entry.stated_reason


@pytest.mark.parametrize("entry", _with(Evidence.WRAPPER, Evidence.IDLE), ids=_by_path)
def test_the_rest_is_there_but_does_not_count(entry: Entry) -> None:
    assert ledger.owner(entry)
    assert entry.status is not Status.WORKS
    assert entry.stated_reason


def test_every_rule_matches_something() -> None:
    paths = [entry.path.removeprefix("pyflink.") for entry in entries()]
    assert [r.pattern for r in RULES if not any(fnmatchcase(p, r.pattern) for p in paths)] == []


def test_gaps_name_only_what_pyflink_has_and_we_lack() -> None:
    known = {entry.path for entry in entries()}
    for module, gaps in GAPS.items():
        for gap in gaps:
            for name in gap.names:
                assert f"pyflink.{module}.{name}" in known
                assert name not in vars(importlib.import_module(f"firesteel.{module}"))


def test_an_unknown_name_is_an_ordinary_error() -> None:
    module = importlib.import_module("firesteel.datastream.connectors.pulsar")
    with pytest.raises(AttributeError, match="no attribute 'Typo'"):
        module.Typo
    assert not hasattr(module, "__path__")
