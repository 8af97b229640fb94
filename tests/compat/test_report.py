from __future__ import annotations

import pytest

from tests.compat import report

_README = report.PAGE.parents[1] / "README.md"


def test_the_page_is_up_to_date() -> None:
    assert report.PAGE.read_text() == report.page(), "run: python -m tests.compat.report"


def test_the_readme_names_the_share() -> None:
    if not _README.exists():
        pytest.skip("there is no README yet")
    assert report.share() in _README.read_text()
