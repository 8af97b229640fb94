"""The programs in docstrings of the public API run and give what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import firesteel.common
import firesteel.datastream
import firesteel.state
import firesteel.state_processor

MODULES = [
    module.name
    for package in (
        firesteel.common,
        firesteel.datastream,
        firesteel.state,
        firesteel.state_processor,
    )
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
