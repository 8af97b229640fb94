"""The manual builds without a warning, loads nothing from other hosts, and documents the API."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.datastream import connectors, formats
from tools.manual import hooks, public_api

_REPOSITORY = Path(__file__).parents[2]

# Modules that users import from. Each name that they export has an entry in the reference.
_PUBLIC_MODULES = [
    "firesteel.common",
    "firesteel.common.io",
    "firesteel.common.serialization",
    "firesteel.common.typeinfo",
    "firesteel.datastream",
    "firesteel.datastream.async_retry_predicates",
    "firesteel.datastream.connectors",
    *(name for _, name, _ in iter_modules(connectors.__path__, "firesteel.datastream.connectors.")),
    "firesteel.datastream.data_stream",
    *(name for _, name, _ in iter_modules(formats.__path__, "firesteel.datastream.formats.")),
    "firesteel.datastream.functions",
    "firesteel.datastream.state",
    "firesteel.datastream.window",
    "firesteel.state_processor",
    "firesteel.table",
    "firesteel.testing",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(directory)],
        cwd=_REPOSITORY,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return directory


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loaded = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)=\"?(?:https?:)?//")
    foreign = [page for page in site.rglob("*.html") if loaded.search(page.read_text())]
    imported = re.compile(r"@import|url\(\"?(?:https?:)?//")
    foreign += [sheet for sheet in site.rglob("*.css") if imported.search(sheet.read_text())]
    foreign += [image for image in site.rglob("*.svg") if imported.search(image.read_text())]
    assert foreign == []


def test_pages_with_diagrams_bring_the_script_that_draws_them(site: Path) -> None:
    page = (site / "internals/rows-and-epochs/index.html").read_text()
    assert f'<script src="../../{hooks.MERMAID}">' in page
    assert (site / hooks.MERMAID).stat().st_size > 1_000_000
    assert hooks.MERMAID not in (site / "glossary/index.html").read_text()


def test_the_reference_has_members_of_internal_base_classes(site: Path) -> None:
    page = (site / "reference/streams/index.html").read_text()
    for member in ("KeyedStream.sum", "DataStream.name", "AllWindowedStream.trigger"):
        assert f'id="firesteel.datastream.{member}"' in page


def test_examples_are_pages(site: Path) -> None:
    page = (site / "examples/word_count/index.html").read_text()
    assert "examples/word_count.py" in page
    assert "It prints" in page


def test_every_public_name_is_documented_once() -> None:
    documented = [_resolve(path) for path in public_api.documented_paths()]
    twice = [obj for obj in documented if sum(obj is other for other in documented) > 1]
    assert twice == []
    missing = [
        f"{module}.{name}"
        for module in _PUBLIC_MODULES
        for name in importlib.import_module(module).__all__
        if not any(_resolve(f"{module}.{name}") is obj for obj in documented)
    ]
    assert missing == []


def _resolve(path: str) -> object:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize(
    ("name", "link", "expected"),
    [
        ("joins.md", "[b](../examples/batch.py)", "[b](examples/batch.md)"),
        ("joins.md", "[r](../README.md#two-commands)", "[r](index.md#two-commands)"),
        ("decisions/001-rows-are-buffers.md", "[c](../../CHANGELOG.md)", "[c](../changelog.md)"),
        ("joins.md", "[t](time.md#several-channels)", "[t](time.md#several-channels)"),
        ("joins.md", "[f](../pyproject.toml)", "f"),
        ("contributing.md", "[g](docs/glossary.md)", "[g](glossary.md)"),
        ("contributing.md", "[e](examples)", "[e](examples/index.md)"),
        ("joins.md", "```\n[b](../examples/batch.py)\n```", "```\n[b](../examples/batch.py)\n```"),
        ("joins.md", "<!-- runs -->\n```python\n1\n```", "```python\n1\n```"),
    ],
)
def test_links_that_leave_the_manual(name: str, link: str, expected: str) -> None:
    page: Any = SimpleNamespace(file=SimpleNamespace(src_uri=name))
    assert hooks.on_page_markdown(link, page) == expected


def test_a_link_to_nothing_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    page: Any = SimpleNamespace(file=SimpleNamespace(src_uri="joins.md"))
    hooks.on_page_markdown("[x](../examples/gone.py)", page)
    assert "'../examples/gone.py', which does not exist" in caplog.text


def test_doctests_become_code_blocks() -> None:
    text = "Adds.\n\n>>> 1 + 1\n2\n\nMore."
    assert public_api.fence_doctests(text) == "Adds.\n\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
