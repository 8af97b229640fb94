"""What all tests share."""

from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says more about the machine than about the code.
settings.register_profile("firesteel", deadline=None)
settings.load_profile("firesteel")

_SPARK_TESTS = Path(__file__).parent / "spark"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _SPARK_TESTS in item.path.parents:
            item.add_marker(pytest.mark.spark)
    # Long files first: processes that share the tests then end together.
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)
