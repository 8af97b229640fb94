"""The terminal's side: rates, ratios and the extra sections as text tables."""

from collections.abc import Iterable, Sequence

from benchmarks.cases import Case
from benchmarks.peers.catalog import FIRESTEEL, Peer
from benchmarks.runner import PeerResult

Cells = Sequence[str]


def render(head: Cells, rows: Iterable[Cells]) -> str:
    """First column to the left, the others to the right."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]

    def join(line: Cells) -> str:
        numbers = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        return "  ".join([line[0].ljust(widths[0]), *numbers]).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([join(head), rule, *(join(line) for line in lines[1:])])


def rate_text(rate: float | None) -> str:
    if rate is None:
        return "-"
    return f"{rate:,.0f}" if rate < 1e6 else f"{rate / 1e6:,.2f} M"


def ratio_text(ratio: float | None, goal: float | None) -> str:
    if ratio is None:
        return "-"
    text = f"{ratio:,.0f}x" if ratio >= 20 else f"{ratio:.2f}x"
    return f"{text} !" if goal is not None and ratio < goal else text


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
    """Firesteel's rate divided by the peer's; an exclamation mark where the goal is missed."""
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


def sections_text(own: PeerResult | None, bare: PeerResult | None) -> list[str]:
    found = own.sections if own else []
    floors = {entry["exchanges"]: entry["milliseconds"] for entry in bare.sections} if bare else {}
    tables = []
    if hops := [entry for entry in found if entry["section"] == "hop"]:
        rows = [[entry["case"], entry["slot_host"], rate_text(entry["rate"])] for entry in hops]
        tables.append(render(["slot host", "", "records/s"], rows))
    if timeouts := [entry for entry in found if entry["section"] == "timeout"]:
        rows = [
            [
                f"{entry['milliseconds']} ms" if entry["milliseconds"] >= 0 else "-1 (off)",
                rate_text(entry["rate"]),
                f"{entry['median_latency']:,.0f} ms",
            ]
            for entry in timeouts
        ]
        tables.append(render(["buffer timeout", "records/s", "median latency"], rows))
    if epochs := [entry for entry in found if entry["section"] == "epoch"]:
        rows = [
            epoch_row(entry["exchanges"], entry["milliseconds"], floors.get(entry["exchanges"]))
            for entry in epochs
        ]
        tables.append(render(["epoch of 100 records", "Firesteel", "bare query", ""], rows))
    return tables


def epoch_row(exchanges: int, milliseconds: float, floor: float | None) -> list[str]:
    title = f"{exchanges} exchange{'' if exchanges == 1 else 's'}"
    if floor is None:
        return [title, f"{milliseconds:.0f} ms", "-", ""]
    text = ratio_text(milliseconds / floor, None) + (" !" if milliseconds > 1.3 * floor else "")
    return [title, f"{milliseconds:.0f} ms", f"{floor:.0f} ms", text]
