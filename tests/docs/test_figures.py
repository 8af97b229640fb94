"""The figures of the manual are those that the scripts draw, and load nothing from other hosts."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from tools.figures import architecture, benchmarks, execution

_FIGURES = Path(__file__).parents[2] / "docs" / "figures"


@pytest.mark.parametrize("script", [architecture, execution], ids=lambda one: one.FIGURE.name)
def test_a_drawing_is_drawn_from_its_script(script: ModuleType) -> None:
    assert script.FIGURE.read_text() == script.draw(), "run: make figures"


def test_plots_show_recorded_runs() -> None:
    history = benchmarks.runs()
    newest = benchmarks.newest_full_run(history)
    assert benchmarks.rate(newest, "firesteel", "map_filter")
    for plot in (
        benchmarks.plot_rates(newest),
        benchmarks.plot_ratios(history),
        benchmarks.plot_epochs(newest),
    ):
        assert plot.axes


@pytest.mark.parametrize("figure", sorted(_FIGURES.glob("*.svg")), ids=lambda path: path.name)
def test_figures_stand_alone(figure: Path) -> None:
    assert not re.search(r"@import|@font-face|(?:href|src)=\"https?:|url\(", _without_local(figure))


def _without_local(figure: Path) -> str:
    """The text of a figure without references to its own elements."""
    return re.sub(r"url\(#[\w-]+\)", "", figure.read_text())


def test_every_figure_is_shown_on_a_page() -> None:
    pages = "".join(page.read_text() for page in _FIGURES.parent.rglob("*.md"))
    figures = {path.name for path in _FIGURES.glob("*.svg")} - {"favicon.svg"}
    assert {name for name in figures if f"figures/{name}" not in pages} == set()
