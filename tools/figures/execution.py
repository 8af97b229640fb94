"""Draws the two ways to execute a streaming job: real-time and micro-batch.

Run with ``python -m tools.figures.execution``. A test compares the picture with the file.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tools.figures.architecture import BLUE, GRAY, GREEN, MUTED, ORANGE, Drawing

FIGURE = Path(__file__).parents[2] / "docs" / "figures" / "execution.svg"

WIDTH, HEIGHT = 1200, 780
_LEVELS = ("source, map", "reduce", "window, sink")
_TASK_WIDTH, _TASK_HEIGHT = 190, 52
_COLUMNS = (70, 420, 770)
_SLOTS = 2


def draw() -> str:
    """The whole picture, as SVG."""
    drawing = Drawing(WIDTH, HEIGHT, "The two ways to execute a streaming job")
    _draw_real_time(drawing, 20)
    _draw_micro_batch(drawing, 400)
    return drawing.svg()


def _draw_real_time(drawing: Drawing, top: int) -> None:
    drawing.room(
        (20, top, 1160, 360),
        "real-time",
        "one Spark query: the tasks of all levels run at the same time, as long as the job",
        BLUE,
    )
    tasks = top + 80
    for slot in range(_SLOTS):
        y = tasks + slot * 80
        for number, name in enumerate(_LEVELS):
            box = (_COLUMNS[number], y, _TASK_WIDTH, _TASK_HEIGHT)
            drawing.box(box, f"{name} ({slot + 1}/{_SLOTS})", "a task, and the slot in it")
    for left, right in pairwise(_COLUMNS):
        for start in range(_SLOTS):
            for end in range(_SLOTS):
                drawing.arrow(
                    (left + _TASK_WIDTH, tasks + 26 + 80 * start),
                    (right, tasks + 26 + 80 * end),
                )
        middle = (left + _TASK_WIDTH + right) / 2
        drawing.text((middle, tasks - 8), "records and marks", 12, style='font-style="italic"')
    drawing.text((1075, tasks + 50), "results after", 13, MUTED)
    drawing.text((1075, tasks + 68), "milliseconds", 13, MUTED)
    drawing.arrow((960, tasks + 26), (1020, tasks + 46))
    drawing.arrow((960, tasks + 106), (1020, tasks + 70))
    driver = tasks + 200
    drawing.box((420, driver, 190, 52), "driver", "job master", colors=GREEN)
    for x in _COLUMNS:
        middle = x + _TASK_WIDTH / 2
        side = (420 if x < 420 else 610, driver + 26)
        at = (515, driver) if x == 420 else side
        drawing.arrow((middle, tasks + 132), at, dashed=True, both=True)
    note = "end of epoch, acks"
    drawing.text((240, driver + 40), note, 12, style='font-style="italic"')
    drawing.text((790, driver + 40), note, 12, style='font-style="italic"')


def _draw_micro_batch(drawing: Drawing, top: int) -> None:
    drawing.room(
        (20, top, 1160, 360),
        "micro-batch",
        "one Spark job per epoch: one level after the other, then the next epoch",
        ORANGE,
    )
    tasks = top + 80
    for slot in range(_SLOTS):
        y = tasks + slot * 80
        for number, name in enumerate(_LEVELS):
            box = (_COLUMNS[number], y, _TASK_WIDTH, _TASK_HEIGHT)
            drawing.box(box, f"{name} ({slot + 1}/{_SLOTS})", f"a task of step {number + 1}")
    for left, right in pairwise(_COLUMNS):
        drawing.arrow(
            (left + _TASK_WIDTH, tasks + 66),
            (right, tasks + 66),
            label="all records of the epoch",
            at=((left + _TASK_WIDTH + right) / 2, tasks + 56),
        )
    drawing.box((1030, tasks + 40, 130, 52), "driver", "job master", colors=GREEN)
    drawing.arrow((960, tasks + 66), (1030, tasks + 66), label="acks", at=(995, tasks + 56))
    drawing.arrow(
        (1095, tasks + 40),
        (1095, tasks - 16),
        (165, tasks - 16),
        (165, tasks),
        label="next epoch",
        at=(640, tasks - 22),
        dashed=True,
    )
    hosts = tasks + 200
    for slot in range(_SLOTS):
        x = 245 + slot * 350
        drawing.box(
            (x, hosts, 260, 56),
            f"slot host {slot + 1}",
            f"slot {slot + 1} of all levels: state, open functions",
            colors=GRAY,
        )
        drawing.arrow((x + 130, tasks + 134), (x + 130, hosts), dashed=True, both=True)
    drawing.text((1060, hosts + 22), "results after an epoch:", 13, MUTED)
    drawing.text((1060, hosts + 40), "0.05 s to some seconds", 13, MUTED)
    drawing.text((555, hosts - 24), "tasks bring rows", 12, style='font-style="italic"')


if __name__ == "__main__":
    FIGURE.write_text(draw())
