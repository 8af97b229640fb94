"""Text tables for rates, ratios and the extra sections."""

from collections.abc import Iterable, Sequence

from benchmarks.cases import BY_NAME, Case
from benchmarks.measure import Figures
from benchmarks.peers.catalog import FIRESTEEL, Peer
from benchmarks.runner import PeerResult
from benchmarks.sections.catalog import SECTIONS
from benchmarks.text import rate_text, ratio_text

Cells = Sequence[str]


def render(head: Cells, rows: Iterable[Cells]) -> str:
    """Render a table. The first column is aligned left, the others right."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]

    def join(line: Cells) -> str:
        numbers = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        return "  ".join([line[0].ljust(widths[0]), *numbers]).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([join(head), rule, *(join(line) for line in lines[1:])])


def ratio(result: PeerResult, own: PeerResult, case: str) -> float | None:
    rate, mine = result.rate(case), own.rate(case)
    if rate is None or mine is None or not rate:
        return None
    return mine / rate


def rates_table(cases: Sequence[Case], results: Sequence[PeerResult]) -> str:
    head = ["records/s", *(result.peer.title for result in results)]
    rows = [
        [case.title, *(rate_text(result.rate(case.name)) for result in results)] for case in cases
    ]
    return render(head, rows)


def ratios_table(cases: Sequence[Case], results: Sequence[PeerResult]) -> str | None:
    """Render Firesteel's rate divided by the rate of each peer, with `!` below the goal."""
    own = next((result for result in results if result.peer == FIRESTEEL), None)
    others = [result for result in results if result.peer != FIRESTEEL and result.cases]
    if own is None or not own.cases or not others:
        return None
    rows = [
        [
            case.title,
            *(
                ratio_text(ratio(other, own, case.name), other.peer.goal_for(case.name))
                for other in others
            ),
        ]
        for case in cases
    ]
    rows.append(["goal", *(goal_text(other.peer) for other in others)])
    return render(["Firesteel against", *(other.peer.title for other in others)], rows)


def goal_text(peer: Peer) -> str:
    if peer.goal is None:
        return "-"
    return f"{peer.goal:g}x" + (" *" if peer.goal_cases else "")


def line(peer: Peer, figures: Figures) -> str | None:
    """Describe a report of a peer in one line, or return None if it has no figures."""
    if "section" in figures:
        section = SECTIONS[figures["section"]]
        title = f"{peer.title}, {section.name}"
        told = missing(figures) or ", ".join(
            cell for cell in section.row(figures | {"peer": peer.title}) if cell
        )
        return f"{title}: {told}"
    if "case" not in figures or "skipped" in figures:
        return None
    title = f"{peer.title}, {BY_NAME[figures['case']].title}"
    if "failed" in figures:
        return f"{title}: failed: {figures['failed'].splitlines()[0]}"
    return f"{title}: {rate_text(figures['rate'])} records/s"


def sections_text(results: Sequence[PeerResult]) -> list[str]:
    """Render the measured sections of all peers, and the reasons for missing ones."""
    found = [
        figures | {"peer": result.peer.title} for result in results for figures in result.sections
    ]
    texts = []
    for name, section in SECTIONS.items():
        of_section = [figures for figures in found if figures["section"] == name]
        measured = [figures for figures in of_section if not missing(figures)]
        if measured:
            rows = map(section.row, sorted(measured, key=section.order))
            texts.append(render(section.head, rows))
        texts += [
            f"{name}, {figures['peer']}: {reason}"
            for figures in of_section
            if (reason := missing(figures))
        ]
    return texts


def missing(figures: Figures) -> str | None:
    """Return the reason for missing figures, or None."""
    if "failed" in figures:
        return f"failed: {figures['failed'].splitlines()[0]}"
    return figures.get("skipped")
