"""The plot of a soak: resources over time, with the faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from tools.soak.supervisor import Course
from tools.soak.verdict import SERIES, Series

# The figures of each panel.
_PANELS = {
    "memory, MB": SERIES[:5],
    "threads": SERIES[5:7],
    "handles": SERIES[7:9],
    "files": SERIES[9:10],
    "milliseconds": SERIES[10:],
}
_COLORS = ("#ff5722", "#1e88e5", "#43a047", "#6d4c41", "#8e24aa")


def write_plot(course: Course, path: Path) -> None:
    """Draw a panel for each kind of figure, one below the other, as SVG."""
    mpl.use("svg")
    style: dict[Any, Any] = {
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "figure.facecolor": "white",
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "grid.color": "#e0e0e0",
        "legend.frameon": False,
        "svg.hashsalt": "firesteel",
        # Letters as text keep the file small.
        "svg.fonttype": "none",
    }
    with mpl.rc_context(style):
        figure, panels = plt.subplots(
            len(_PANELS), figsize=(9, 11), sharex=True, layout="constrained"
        )
        for axes, (title, series) in zip(panels, _PANELS.items(), strict=True):
            for one, color in zip(series, _COLORS, strict=False):
                _draw(axes, course, one, color)
            for seconds, name in course.faults:
                driver = name.startswith("kill_driver")
                axes.axvline(
                    seconds / 60, color="#000000" if driver else "#cfd8dc", linewidth=0.7, zorder=0
                )
            axes.set_ylabel(title)
            axes.set_ylim(bottom=0)
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        panels[-1].set_xlabel("minutes; gray lines are faults, black lines are killed drivers")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _draw(axes: Axes, course: Course, series: Series, color: str) -> None:
    points = [
        (observation.life, observation.resources.seconds / 60, value)
        for observation in course.observations
        if (value := series.read(observation)) is not None
    ]
    for life in sorted({point[0] for point in points}):
        own = [(x, y) for number, x, y in points if number == life]
        axes.plot(
            *zip(*own, strict=True),
            color=color,
            linewidth=1,
            label=series.title if life == points[0][0] else None,
        )
