"""A browser for the tests of the dashboard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.chromium import LAPTOP, Browser, running_browser, why_not


@pytest.fixture(scope="session")
def _running_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if reason := why_not():
        pytest.skip(reason)
    with running_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def browser(_running_browser: Browser) -> Browser:
    browser = _running_browser
    browser.set_size(LAPTOP)
    browser.set_colors("light")
    return browser
