"""Plots of the benchmark history: rates, ratios over time, and epochs.

Run with ``python -m tools.figures.benchmarks``. Every figure comes from benchmarks/history.jsonl.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

REPOSITORY = Path(__file__).parents[2]
HISTORY = REPOSITORY / "benchmarks" / "history.jsonl"
FIGURES = REPOSITORY / "docs" / "figures"

PEERS = {
    "firesteel": ("Firesteel", "#ff5722"),
    "handwritten": ("hand-written PySpark loop", "#455a64"),
    "bytewax": ("bytewax", "#fbc02d"),
    "transform_with_state": ("Spark transformWithState", "#43a047"),
    "pyflink": ("PyFlink", "#1e88e5"),
}
CASES = [
    "map_filter",
    "union",
    "fan_out",
    "strings_1kb",
    "wide_rows",
    "sum_tuples",
    "reduce_1k",
    "reduce_1m",
    "tumbling_1k",
]
GOAL_AGAINST_HANDWRITTEN = 0.7

Run = dict[str, Any]


def runs() -> list[Run]:
    """All runs of the history, oldest first."""
    return [json.loads(line) for line in HISTORY.read_text().splitlines()]


def rate(run: Run, peer: str, case: str) -> float | None:
    """Records per second, if the peer ran the case."""
    figures = run["peers"].get(peer, {}).get("cases", {}).get(case, {})
    found: float | None = figures.get("rate")
    return found


def newest_full_run(history: list[Run]) -> Run:
    """The newest run in which Firesteel ran every case, and every reference took part."""
    for run in reversed(history):
        if set(PEERS) <= set(run["peers"]) and all(rate(run, "firesteel", case) for case in CASES):
            return run
    raise LookupError("No run of the history has all references. Run: make bench-peers bench")


def plot_rates(run: Run) -> Figure:
    """A group of bars for each case, with a bar for each peer."""
    figure, axes = plt.subplots(figsize=(9, 7.2), layout="constrained")
    height = 0.16
    for row, case in enumerate(CASES):
        found = [(peer, value) for peer in PEERS if (value := rate(run, peer, case))]
        for place, (peer, value) in enumerate(found):
            label, color = PEERS[peer]
            middle = row + (place - (len(found) - 1) / 2) * height
            axes.barh(middle, value, height=height * 0.92, color=color, label=label)
            if peer == "firesteel":
                axes.text(value * 1.1, middle, _short(value), va="center", fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(1_000, 60_000_000)
    axes.set_yticks(range(len(CASES)), CASES)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axes.set_xlabel("records per second on two cores, logarithmic")
    axes.grid(axis="x", which="major")
    bars = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    labels = [label for label, _ in PEERS.values()]
    figure.legend([bars[name] for name in labels], labels, loc="outside upper center", ncols=5)
    return _signed(figure, axes, run)


def plot_ratios(history: list[Run]) -> Figure:
    """Firesteel's rate divided by that of the hand-written loop, run by run."""
    figure, axes = plt.subplots(figsize=(9, 4.2), layout="constrained")
    shared = [run for run in history if {"firesteel", "handwritten"} <= set(run["peers"])]
    for case in CASES:
        found = [
            (number, own / other)
            for number, run in enumerate(shared)
            if (own := rate(run, "firesteel", case)) and (other := rate(run, "handwritten", case))
        ]
        if found:
            axes.plot(*zip(*found, strict=True), marker="o", markersize=4, label=case)
    axes.axhline(GOAL_AGAINST_HANDWRITTEN, color="#455a64", linestyle="--", linewidth=1)
    axes.text(0, GOAL_AGAINST_HANDWRITTEN + 0.015, "goal", fontsize=8, color="#455a64")
    axes.set_xticks(
        range(len(shared)),
        [f"{run['date'][5:10]}\n{run['revision'].rstrip('+')}" for run in shared],
        fontsize=8,
    )
    axes.set_ylim(bottom=0)
    axes.set_ylabel("Firesteel / hand-written loop")
    axes.grid(axis="y")
    figure.legend(loc="outside right center", fontsize=8)
    return figure


def plot_epochs(run: Run) -> Figure:
    """The time from one epoch to the next, beside a bare Structured Streaming query."""
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    epochs = [part for part in run["peers"]["firesteel"]["sections"] if part["section"] == "epoch"]
    for key, label, color, shift in (
        ("milliseconds", "Firesteel", "#ff5722", -0.2),
        ("floor", "bare Structured Streaming query", "#43a047", 0.2),
    ):
        bars = axes.barh(
            [part["exchanges"] + shift for part in epochs],
            [part[key] for part in epochs],
            height=0.36,
            color=color,
            label=label,
        )
        axes.bar_label(bars, fmt="%.0f ms", padding=4, fontsize=8)
    axes.set_yticks(
        [part["exchanges"] for part in epochs],
        [f"{part['exchanges']} exchanges" for part in epochs],
    )
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("median time from one epoch to the next, 100 records")
    figure.legend(loc="outside upper center", ncols=2)
    return _signed(figure, axes, run)


def _signed(figure: Figure, axes: Axes, run: Run) -> Figure:
    """Say where the figures come from."""
    axes.set_title(f"revision {run['revision']}, {run['date'][:10]}", fontsize=8, loc="right")
    return figure


def _short(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:.3g} M"
    return f"{value / 1_000:.3g} k"


def main() -> None:
    """Write all plots."""
    mpl.use("svg")
    plt.rcParams.update(
        {
            "axes.grid.axis": "x",
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.axisbelow": True,
            "figure.facecolor": "white",
            "font.family": "DejaVu Sans",
            "font.size": 10,
            "grid.color": "#e0e0e0",
            "legend.frameon": False,
            "svg.hashsalt": "firesteel",
        }
    )
    history = runs()
    newest = newest_full_run(history)
    for name, figure in (
        ("benchmark-rates", plot_rates(newest)),
        ("benchmark-ratios", plot_ratios(history)),
        ("benchmark-epochs", plot_epochs(newest)),
    ):
        figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
