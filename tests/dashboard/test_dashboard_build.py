"""The built files of the dashboard belong to its sources, and load nothing from other hosts."""

from __future__ import annotations

import json
import re

import pytest

from tools.build_dashboard import RECORD, STATIC, built_digests, source_digest

_TEXTS = sorted(file for file in STATIC.rglob("*") if file.suffix in {".html", ".js", ".css"})


def test_the_built_files_belong_to_the_sources() -> None:
    record = json.loads((STATIC / RECORD).read_text())
    assert record["sources"] == source_digest(), "run: make dashboard"
    assert record["files"] == built_digests(), "run: make dashboard"


def test_the_licenses_of_the_libraries_are_there() -> None:
    text = (STATIC / "third-party-licenses.txt").read_text()
    for library in ("preact", "uplot", "@dagrejs/dagre", "@fontsource-variable/inter"):
        assert re.search(rf"^{re.escape(library)} \d", text, re.MULTILINE)


@pytest.mark.parametrize("file", _TEXTS, ids=lambda file: file.suffix)
def test_nothing_comes_from_other_hosts(file) -> None:
    allowed = r"https?://(?:www\.w3\.org|\$\{)"
    assert re.findall(rf"(?!{allowed})https?://[\w.$-]+", file.read_text()) == []


def test_the_page_allows_no_inline_code() -> None:
    page = (STATIC / "index.html").read_text()
    policy = re.search(r'Content-Security-Policy"\s+content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\son\w+=", page) == []
