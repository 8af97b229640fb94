"""Screenshots of `make demo`: runs it, crashes a task, and keeps the terminal's picture as SVG.

Run with ``python -m tools.figures.demo``. It takes about half a minute and needs Java for Spark.
"""

from __future__ import annotations

import io
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.terminal_theme import DIMMED_MONOKAI

REPOSITORY = Path(__file__).parents[2]
DEMO = REPOSITORY / "examples" / "demo"
FIGURES = REPOSITORY / "docs" / "figures"

COLUMNS = 88
SECONDS = 24
CRASH_AFTER = 9
# The picture of the job after its crash is taken this many updates later, some seconds.
UPDATES_AFTER_RECOVERY = 60

# Rich's own format names fonts on a public server. Readers have a monospaced font.
_SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
    <style>
    .{unique_id}-matrix {{
        font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
        font-size: {char_height}px;
        line-height: {line_height}px;
    }}
    .{unique_id}-title {{
        font-size: 18px;
        font-weight: bold;
        font-family: sans-serif;
    }}
    {styles}
    </style>
    <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
    </defs>
    {chrome}
    <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
    </g>
</svg>
"""


class Camera:
    """Takes the place of rich's Live: keeps pictures instead of showing them."""

    def __init__(self) -> None:
        self.view: Any = None
        self.running: RenderableType | None = None
        self.recovered: RenderableType | None = None
        self._since_recovery = 0

    def update(self, picture: RenderableType) -> None:
        if self.view is None:
            return
        if not self.view.restored:
            if not self.view.news:
                self.running = picture
            return
        self._since_recovery += 1
        if self._since_recovery <= UPDATES_AFTER_RECOVERY:
            self.recovered = picture


def photograph() -> Camera:
    """Run the demo with a camera instead of a terminal."""
    sys.path.insert(0, str(DEMO))
    import view  # a module of the demo

    camera = Camera()

    @contextmanager
    def open_view(address: str, *streams: Any) -> Iterator[Any]:
        camera.view = view.LiveView(camera, address, *streams)
        yield camera.view

    view.open_view = open_view
    sys.argv = ["run.py", "--seconds", str(SECONDS), "--crash-after", str(CRASH_AFTER)]
    runpy.run_path(str(DEMO / "run.py"), run_name="__main__")
    return camera


def write(
    picture: RenderableType | None, name: str, *, title: str = "make demo", columns: int = COLUMNS
) -> None:
    if picture is None:
        raise RuntimeError(f"The demo did not reach the moment of {name}.")
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    console.print(picture)
    svg = console.export_svg(
        title=title, theme=DIMMED_MONOKAI, code_format=_SVG, unique_id=Path(name).stem
    )
    (FIGURES / name).write_text(svg)


if __name__ == "__main__":
    pictures = photograph()
    write(pictures.running, "demo-running.svg")
    write(pictures.recovered, "demo-recovered.svg")
