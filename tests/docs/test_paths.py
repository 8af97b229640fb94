"""Files of the project that the pages name exist, and the first page links all pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).parents[2]
_NAMED = re.compile(r"`((?:firesteel|tests|benchmarks|examples|tools|docs)/[\w./-]*?\w)/?`")
# Pages about the code leave the name of the package out.
_SHORT = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.py)`")
_PAGES = [*_REPOSITORY.glob("*.md"), *(_REPOSITORY / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_REPOSITORY)))
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    named = {*_NAMED.findall(text), *_SHORT.findall(text)}
    assert sorted(name for name in named if not _exists(name)) == []


def test_the_first_page_links_all_pages() -> None:
    docs = _REPOSITORY / "docs"
    first = (docs / "index.md").read_text()
    pages = [*docs.glob("*.md"), *(docs / "decisions").glob("*.md")]
    names = {str(page.relative_to(docs)) for page in pages} - {"index.md"}
    assert sorted(name for name in names if f"]({name})" not in first) == []


def _exists(name: str) -> bool:
    return any((place / name).exists() for place in (_REPOSITORY, _REPOSITORY / "firesteel"))
