"""MkDocs hooks: pages from outside docs/, links between both, and diagrams without a network.

MkDocs knows the files below docs/ only. These hooks add the change log, the contributor guide and
the example programs as pages. They redirect links that leave docs/ to those pages. A link to any
other file of the repository becomes plain text, and a link to nothing fails the strict build.
"""

from __future__ import annotations

import ast
import logging
import posixpath
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

REPOSITORY = Path(__file__).parents[2]
MERMAID = "assets/javascripts/mermaid.min.js"

# Pages that stand in the root of the repository, by their name on the site.
ROOT_PAGES = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}

_FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)[^\n]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\[]*)\]\((?P<path>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")
_COMMENT_LINE = re.compile(r"^<!--.*?-->\n", re.MULTILINE)

_log = logging.getLogger("mkdocs.hooks.manual")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace ``folder/*`` in the navigation by the pages of the folder."""
    config.nav = _expand(config.nav)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/, and the script that draws diagrams."""
    for name, source in ROOT_PAGES.items():
        files.append(File.generated(config, name, content=(REPOSITORY / source).read_text()))
    for name, content in _example_pages().items():
        files.append(File.generated(config, name, content=content))
    files.append(File.generated(config, MERMAID, abs_src_path=str(_mermaid_script())))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Drop comments for tools, and redirect links that leave docs/."""
    name = page.file.src_uri
    source = ROOT_PAGES.get(name) or f"docs/{name}"

    def redirect(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match["path"]))
        if source.startswith("docs/") and target.startswith("docs/"):
            return match[0]
        if not (REPOSITORY / target).exists():
            _log.warning("'%s' links to '%s', which does not exist.", source, match["path"])
            return match[0]
        site_page = _site_page(target)
        if site_page is None:
            return match["text"]
        relative = posixpath.relpath(site_page, posixpath.dirname(name) or ".")
        return f"[{match['text']}]({relative}{match['anchor'] or ''})"

    if name.startswith("examples/"):
        return markdown
    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [_LINK.sub(redirect, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    parts.append(_LINK.sub(redirect, markdown[end:]))
    return _COMMENT_LINE.sub("", "".join(parts))


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Load Mermaid from the site itself, on pages with diagrams only.

    Material would fetch it from a public server if the page did not bring it.
    """
    if 'class="mermaid"' not in output:
        return output
    script = get_relative_url(MERMAID, page.file.url)
    return output.replace("</head>", f'<script src="{script}"></script></head>', 1)


def _expand(nav: Any) -> Any:
    if isinstance(nav, list):
        return [_expand(item) for item in nav]
    if isinstance(nav, dict):
        return {title: _expand(item) for title, item in nav.items()}
    folder, star, _ = nav.partition("/*")
    if not star:
        return nav
    if folder == "examples":
        return list(_example_pages())
    return [f"{folder}/{path.name}" for path in sorted((REPOSITORY / "docs" / folder).glob("*.md"))]


def _site_page(target: str) -> str | None:
    """The page of the site that shows a file or folder of the repository."""
    for name, source in ROOT_PAGES.items():
        if source == target:
            return name
    if target == "README.md":
        return "index.md"
    if target == "examples" or target.startswith("examples/demo"):
        return "examples/index.md"
    if target.startswith("examples/"):
        return target.removesuffix(".py") + ".md"
    folder = REPOSITORY / target
    if target.startswith("docs/"):
        page = min(folder.glob("*.md"), default=None) if folder.is_dir() else folder
        if page is not None:
            return page.relative_to(REPOSITORY / "docs").as_posix()
    return None


def _example_pages() -> dict[str, str]:
    """A page for each program of examples/, and one that lists them."""
    pages = {}
    rows = []
    for path in sorted((REPOSITORY / "examples").glob("*.py")):
        title = path.stem.replace("_", " ").capitalize()
        code = path.read_text()
        docstring = ast.get_docstring(ast.parse(code)) or ""
        about, marker, output = docstring.partition("\nOutput")
        heading, _, output = output.partition(":\n")
        program = code[code.index('"""', 3) + 3 :].strip("\n")
        text = f"# {title}\n\n{about.strip()}\n\n```python title='examples/{path.name}'\n"
        text += f"{program}\n```\n"
        if marker:
            text += f"\nIt prints{heading}:\n\n```text\n{_dedent(output)}\n```\n"
        pages[f"examples/{path.stem}.md"] = text
        rows.append(f"| [{title}]({path.stem}.md) | {about.strip().splitlines()[0]} |")
    index = (
        "# Examples\n\nEach program runs on local Spark with `python examples/<name>.py`, and a"
        " test compares its output with the page.\n\n| program | |\n|---|---|\n"
    )
    return {"examples/index.md": index + "\n".join(rows) + "\n", **pages}


def _dedent(output: str) -> str:
    lines = output.strip("\n").splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[margin:] for line in lines)


def _mermaid_script() -> Path:
    """The script from the package mermaidx, so that the site needs no other host."""
    spec = find_spec("mermaidx")
    if spec is None or spec.origin is None:
        raise PluginError("The package mermaidx is missing. Run: pip install -e '.[docs]'")
    return Path(spec.origin).parent / "assets" / "mermaid.js"
