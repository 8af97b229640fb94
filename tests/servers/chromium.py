"""A real browser for tests: Chromium without a window, driven by Selenium.

``python -m tests.servers.chromium`` looks for Chromium and its driver. As root on Debian it installs
them, as in containers of continuous integration.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_DRIVERS = ("chromedriver", "chromium.chromedriver")
_PACKAGES = ("chromium", "chromium-driver")
_INSTALL_SECONDS = 300
_WAIT_SECONDS = 30.0

LAPTOP = (1440, 900)
PHONE = (390, 844)


def _find(names: tuple[str, ...]) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)


def why_not() -> str | None:
    """Return the reason for which a browser cannot start, or None if it can."""
    if _find(_BROWSERS) is None or _find(_DRIVERS) is None:
        return "there is no Chromium with its driver: run `make browser` as root, or install them"
    return None


def install() -> str | None:
    """Install the browser if there is none. Return the reason if that is not possible."""
    if why_not() is None:
        return None
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return f"{why_not()} (Debian's packages {' and '.join(_PACKAGES)})"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    quiet = ["apt-get", "-qq", "-o", "Acquire::Retries=2"]
    commands = (["update"], ["install", "--yes", "--no-install-recommends", *_PACKAGES])
    for command in commands:
        try:
            ran = subprocess.run(
                [*quiet, *command],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=_INSTALL_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return f"apt-get {command[0]} did not end within {_INSTALL_SECONDS} s"
        if ran.returncode != 0:
            return f"apt-get {command[0]} failed: {ran.stderr.strip()[-500:]}"
    return why_not()


class Browser:
    """A window of the browser."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        # A change of the fragment alone would not load the page again.
        self.driver.get("about:blank")
        self.driver.get(address)

    def set_size(self, size: tuple[int, int], *, phone: bool = False, scale: int = 1) -> None:
        width, height = size
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone},
        )

    def set_colors(self, scheme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def wait_for(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until a condition holds, and return its value."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                if found := condition():
                    return found
            except StaleElementReferenceException:
                pass  # The page was drawn again in between.
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{what} did not appear. The page shows:\n{self.text()[:3000]}"
                )
            time.sleep(0.05)

    def find(self, selector: str, text: str = "") -> WebElement:
        """Wait for a visible element that contains a text, and return it."""
        found: WebElement = self.wait_for(
            lambda: self._visible(selector, text), f"{selector} with {text!r}"
        )
        return found

    def _visible(self, selector: str, text: str) -> WebElement | None:
        elements = self.all(selector)
        return next((one for one in elements if one.is_displayed() and text in one.text), None)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def see(self, *texts: str) -> None:
        """Wait until the page shows the texts."""
        for text in texts:
            self.wait_for(lambda text=text: text in self.text(), repr(text))  # type: ignore[misc]

    def gone(self, selector: str) -> None:
        self.wait_for(lambda: not self.all(selector), f"the end of {selector}")

    def text(self) -> str:
        return str(self.run("return document.body ? document.body.innerText : ''"))

    def click(self, selector: str, text: str = "") -> None:
        def clicked() -> bool:
            element = self.find(selector, text)
            self.run("arguments[0].scrollIntoView({block: 'center'})", element)
            element.click()
            return True

        self.wait_for(clicked, f"{selector} with {text!r}")

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def console(self) -> list[str]:
        """Warnings and errors of the console since the last call."""
        entries = self.driver.get_log("browser")
        return [entry["message"] for entry in entries if entry["level"] in {"WARNING", "SEVERE"}]

    @contextmanager
    def without_messages(self) -> Iterator[None]:
        """Fail on a warning or an error in the console. The page is left at the end."""
        self.console()
        try:
            yield
            messages = self.console()
        finally:
            self.driver.get("about:blank")
        assert messages == []

    def screenshot(self, file: Path, *, whole: bool = False) -> None:
        """Write a picture of the window, or of the whole page."""
        if not whole:
            file.write_bytes(self.driver.get_screenshot_as_png())
            return
        root = "document.documentElement"
        width, height = self.run(f"return [{root}.clientWidth, {root}.scrollHeight]")
        picture = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot",
            {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1},
            },
        )
        file.write_bytes(base64.b64decode(picture["data"]))


@contextmanager
def running_browser(profile: Path) -> Iterator[Browser]:
    """Start a browser with an empty profile."""
    binary, driver_path = _find(_BROWSERS), _find(_DRIVERS)
    assert binary is not None
    assert driver_path is not None
    options = Options()
    options.binary_location = binary
    for argument in (
        "--headless=new",
        "--disable-gpu",
        "--disable-quic",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    if os.geteuid() == 0:
        # Chromium refuses to start its sandbox as root, which containers often use.
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(driver_path))
    try:
        browser = Browser(driver)
        browser.set_size(LAPTOP)
        yield browser
    finally:
        driver.quit()


if __name__ == "__main__":
    if reason := install():
        sys.exit(f"No browser: {reason}")
