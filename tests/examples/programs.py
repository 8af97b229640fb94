"""Finds the programs to run: the files of examples/, and the marked snippets of README and docs.

A snippet is a fenced `python` block with `<!-- runs -->` on the line before it. If a fenced `text` block is
the next thing after it, apart from a line that introduces it, that is what it writes. An example names
its output at the end of its docstring.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))

_SNIPPET = re.compile(
    r"^<!-- runs -->\n```python\n(?P<code>.*?)^```\n"
    r"(?:\n(?P<introduction>[^\n`#]+:\n\n)?```text\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Program:
    """``output`` None: whatever it writes is fine."""

    name: str
    code: str
    output: list[str] | None
    ordered: bool = True
    path: Path | None = None


def examples() -> Iterator[Program]:
    for path in EXAMPLES:
        code = path.read_text()
        output, ordered = _documented_output(ast.get_docstring(ast.parse(code)) or "")
        yield Program(f"examples/{path.name}", code, output, ordered, path)


def snippets() -> Iterator[Program]:
    for page in PAGES:
        text = page.read_text()
        for match in _SNIPPET.finditer(text):
            line = text[: match.start()].count("\n") + 2
            output = match["output"]
            ordered = "in any order" not in (match["introduction"] or "").lower()
            yield Program(
                f"{page.relative_to(REPOSITORY)}:{line}",
                match["code"],
                output.splitlines() if output is not None else None,
                ordered,
            )


def _documented_output(docstring: str) -> tuple[list[str] | None, bool]:
    for title, ordered in (("\nOutput:\n", True), ("\nOutput, in any order:\n", False)):
        _, found, text = docstring.partition(title)
        if found:
            return textwrap.dedent(text).splitlines(), ordered
    return None, True
