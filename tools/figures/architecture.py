"""Draws the architecture: the program, the driver, and a job in real time on Spark.

Run with ``python -m tools.figures.architecture``. A test compares the picture with the file.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

FIGURE = Path(__file__).parents[2] / "docs" / "figures" / "architecture.svg"

WIDTH, HEIGHT = 1300, 730

INK = "#263238"
MUTED = "#607d8b"
ORANGE = ("#fff3e0", "#fb8c00")
BLUE = ("#e3f2fd", "#1e88e5")
GREEN = ("#e8f5e9", "#43a047")
GRAY = ("#eceff1", "#90a4ae")
WHITE = ("#ffffff", "#b0bec5")

Colors = tuple[str, str]
Point = tuple[float, float]


class Drawing:
    """SVG elements in the order in which they are painted."""

    def __init__(self, width: int, height: int, label: str) -> None:
        self.width = width
        self.height = height
        self.label = label
        self.elements: list[str] = []

    def text(
        self,
        at: Point,
        text: str,
        size: int = 14,
        color: str = INK,
        style: str = "",
        anchor: str = "middle",
    ) -> None:
        x, y = at
        self.elements.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}" text-anchor="{anchor}"'
            f"{f' {style}' if style else ''}>{escape(text)}</text>"
        )

    def room(
        self, box: tuple[float, float, float, float], title: str, note: str, colors: Colors
    ) -> None:
        """A large area with its title at the top."""
        x, y, *_ = box
        self._rectangle(box, colors, radius=12)
        self.text((x + 16, y + 26), title, 16, colors[1], 'font-weight="bold"', "start")
        self.text((x + 16, y + 45), note, 12, MUTED, "", "start")

    def box(
        self,
        box: tuple[float, float, float, float],
        title: str,
        *lines: str,
        colors: Colors = WHITE,
        code: bool = False,
    ) -> None:
        """A thing with a name and up to some lines about it."""
        x, y, width, height = box
        self._rectangle(box, colors, radius=6)
        step = 17
        top = y + height / 2 - step * len(lines) / 2 + 5
        style = (
            'font-family="ui-monospace, Menlo, Consolas, monospace"'
            if code
            else 'font-weight="bold"'
        )
        self.text((x + width / 2, top), title, 14, INK, style)
        for number, line in enumerate(lines, start=1):
            self.text((x + width / 2, top + step * number), line, 12, MUTED)

    def store(self, box: tuple[float, float, float, float], title: str, note: str) -> None:
        """A cylinder: something durable."""
        x, y, width, height = box
        fill, stroke = GRAY
        lid = 10
        self.elements.append(
            f'<path d="M{x} {y + lid} v{height - 2 * lid} a{width / 2:g} {lid} 0 0 0 {width} 0'
            f" v-{height - 2 * lid} a{width / 2:g} {lid} 0 0 0 -{width} 0"
            f' a{width / 2:g} {lid} 0 0 0 {width} 0" fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>'
        )
        self.text((x + width / 2, y + height / 2 + 8), title, 14, INK, 'font-weight="bold"')
        self.text((x + width / 2, y + height / 2 + 26), note, 12, MUTED)

    def arrow(
        self,
        *points: Point,
        label: str = "",
        at: Point | None = None,
        dashed: bool = False,
        both: bool = False,
    ) -> None:
        """A line through the points, with a head at the last one."""
        path = " ".join(
            f"{'L' if index else 'M'}{x:g} {y:g}" for index, (x, y) in enumerate(points)
        )
        start = ' marker-start="url(#head)"' if both else ""
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self.elements.append(
            f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="1.6"{dash}{start}'
            ' marker-end="url(#head)"/>'
        )
        if label and at is not None:
            self.text(at, label, 12, INK, 'font-style="italic"')

    def _rectangle(
        self, box: tuple[float, float, float, float], colors: Colors, radius: int
    ) -> None:
        x, y, width, height = box
        fill, stroke = colors
        self.elements.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"'
            f' fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>'
        )

    def svg(self) -> str:
        body = "\n  ".join(self.elements)
        return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" font-family="system-ui, sans-serif" role="img" aria-label="{escape(self.label)}">
  <defs>
    <marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
      <path d="M0 0 L10 5 L0 10 z" fill="{INK}"/>
    </marker>
  </defs>
  <rect width="{self.width}" height="{self.height}" rx="14" fill="#fafafa"/>
  {body}
</svg>
"""


def draw() -> str:
    """The whole picture, as SVG."""
    drawing = Drawing(WIDTH, HEIGHT, "The architecture of Firesteel")
    _program(drawing)
    _driver(drawing)
    _spark(drawing)
    _between(drawing)
    return drawing.svg()


def _program(drawing: Drawing) -> None:
    drawing.room((20, 20, 190, 450), "Your program", "PyFlink's API, in Python", ORANGE)
    calls = ["from_source", "map", "key_by", "sum", "print"]
    for number, call in enumerate(calls):
        top = 84 + 76 * number
        drawing.box((45, top, 140, 46), call, code=True)
        if number:
            drawing.arrow((115, top - 30), (115, top))
    drawing.box(
        (20, 500, 190, 72), "Clients", "command line, dashboard,", "scripts, Flink's clients"
    )


def _driver(drawing: Drawing) -> None:
    drawing.room((260, 20, 270, 570), "Driver", "the program, or a process of a session", BLUE)
    drawing.box((285, 80, 220, 56), "StreamGraph", "operators, partitioning")
    drawing.box((285, 164, 220, 56), "JobGraph", "chains of operators, levels")
    drawing.box(
        (285, 248, 220, 92),
        "JobMaster",
        "plans epochs,",
        "keeps source positions",
        "and handles to state",
    )
    drawing.box((285, 380, 220, 72), "CheckpointCoordinator", "starts and completes", "checkpoints")
    drawing.box(
        (285, 500, 220, 72), "REST, Dispatcher", "list, show and control", "the jobs of a driver"
    )
    drawing.arrow((395, 136), (395, 164))
    drawing.arrow((395, 220), (395, 248))
    drawing.arrow((395, 340), (395, 380), both=True)


def _spark(drawing: Drawing) -> None:
    drawing.room(
        (620, 20, 480, 570),
        "Spark",
        "one query in Real-time Mode per attempt, on one machine or a cluster",
        GREEN,
    )
    for level, (top, chain) in enumerate([(90, "Source → Map"), (314, "Sum → Sink")]):
        drawing.text((645, top + 16), f"level {level}", 13, MUTED, 'font-weight="bold"', "start")
        for slot in range(2):
            left = 710 + 188 * slot
            drawing.box(
                (left, top, 176, 92),
                f"slot {slot}",
                chain,
                "in a Python worker, for",
                "as long as the attempt",
                colors=ORANGE,
            )
    drawing.box(
        (645, 212, 430, 72),
        "exchange: Spark's pipelined shuffle",
        "a row is a buffer of many records;",
        "watermarks and barriers flow among the rows",
        colors=GRAY,
    )
    for left in (798, 986):
        drawing.arrow((left, 182), (left, 212))
        drawing.arrow((left, 284), (left, 314))
    drawing.box(
        (645, 470, 430, 90),
        "or in micro-batches",
        "a Spark job per epoch, level by level; slots in resident processes",
        "for DataFrames, few task slots, and by choice",
        colors=GRAY,
    )


def _between(drawing: Drawing) -> None:
    drawing.arrow((210, 108), (285, 108), label="execute", at=(236, 98))
    drawing.arrow((210, 536), (285, 536), label="HTTP", at=(236, 526))
    drawing.arrow((395, 500), (395, 452), dashed=True)
    drawing.arrow((505, 268), (575, 268), (575, 136), (710, 136))
    drawing.text((575, 126), "controls", 12, INK, 'font-style="italic"')
    drawing.arrow((710, 360), (575, 360), (575, 316), (505, 316))
    drawing.text((575, 378), "acks, output", 12, INK, 'font-style="italic"')
    drawing.store((285, 620, 220, 90), "Checkpoint storage", "a directory or S3")
    drawing.arrow((505, 416), (518, 416), (518, 648), (505, 648))
    drawing.arrow((505, 680), (860, 680), (860, 590), dashed=True, both=True)
    drawing.text((683, 671), "state: segments written and restored", 12, INK, 'font-style="italic"')
    drawing.store((1140, 91, 140, 90), "Sources", "Kafka, files, yours")
    drawing.arrow((1140, 136), (1074, 136))
    drawing.store((1140, 315, 140, 90), "Sinks", "Kafka, files, yours")
    drawing.arrow((1074, 360), (1140, 360))
    drawing.store((1140, 470, 140, 90), "DataFrames", "in and out")
    drawing.arrow((1140, 515), (1075, 515), both=True)


if __name__ == "__main__":
    FIGURE.write_text(draw())
