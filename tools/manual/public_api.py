"""Griffe extension: shapes the API reference of the manual.

The reference documents classes under the paths that users import. Their bases may be internal
classes that have no entry of their own. The members of such bases are shown in the class that users
see. Attributes that only the code needs are left out. Doctests in docstrings become code blocks.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from griffe import Alias, AliasResolutionError, Attribute, Class, Extension, Module, Object

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"

_DIRECTIVE = re.compile(r"^::: (?P<path>[\w.]+)$", re.MULTILINE)
_DOCTEST = re.compile(r"(?:^>>> .*\n?)(?:^(?!\s*$).*\n?)*", re.MULTILINE)


def documented_paths() -> list[str]:
    """Paths that the pages of the reference document, in the order of the pages."""
    return [
        match["path"]
        for page in sorted(REFERENCE.glob("*.md"))
        for match in _DIRECTIVE.finditer(page.read_text())
    ]


class PublicApi(Extension):
    """Completes the documented classes and their docstrings once a package is loaded."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fence_doctests(obj.docstring.value)

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        if pkg.name != "firesteel":
            return
        classes = {}
        for path in documented_paths():
            found = pkg[path.removeprefix("firesteel.")]
            target = found.final_target if found.is_alias else found
            if isinstance(target, Class):
                classes[target.path] = target
        for cls in classes.values():
            _adopt_members(cls, documented=set(classes))
            _drop_bare_attributes(cls)


def fence_doctests(text: str) -> str:
    """Put ``>>>`` blocks into fences: Markdown would take them for quotations."""
    if "```" in text:
        return text
    return _DOCTEST.sub(lambda match: f"\n```pycon\n{match[0].rstrip()}\n```\n", text)


def _adopt_members(cls: Class, documented: set[str]) -> None:
    try:
        bases = cls.mro()
    except (ValueError, AliasResolutionError):
        return
    for base in bases:
        if base.path in documented:
            continue
        for name, member in base.members.items():
            if not name.startswith("_") and name not in cls.members:
                cls.set_member(name, Alias(name, member, parent=cls))


def _drop_bare_attributes(cls: Class) -> None:
    """Leave out attributes without a docstring, except those that users name.

    Users name constants, fields of data classes, properties, and second names of methods.
    """
    if "dataclass" in cls.labels:
        return
    for name, member in list(cls.members.items()):
        if not isinstance(member, Attribute) or member.docstring is not None:
            continue
        second_name = str(member.value) in cls.members
        if not (name.isupper() or "property" in member.labels or second_name):
            cls.del_member(name)
