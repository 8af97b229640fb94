"""Writes docs/compatibility.md from the ledger: ``python -m tests.compat.report``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from tests.compat.ledger import Entry, Evidence, Status, entries

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"

_HEAD = """\
# Compatibility with PyFlink 2.3

Written by `python -m tests.compat.report`; a test fails when it is out of date. Change `pyflink` to
`firesteel` in the imports, and the names that work behave as in PyFlink. Those that do not are
errors that say why, at the import or at the latest when the program is built.

A name is a class, a function, or a member of a class; a member counts once, where its class is
defined. What works is checked by `tests/compat`: the name is there, and it takes PyFlink's
parameters in PyFlink's order (those that hold Java objects left out).

"""


def share() -> str:
    counts = Counter(entry.status for entry in entries())
    total = counts.total()
    works = counts[Status.WORKS]
    return f"{works} of {total} names ({100 * works / total:.1f} %)"


def page() -> str:
    return _HEAD + f"**{share()} work.**\n\n" + _modules() + "\n" + _gaps()


def _modules() -> str:
    lines = ["| module | works | not yet | never |", "|---|---:|---:|---:|"]
    totals: Counter[Status] = Counter()
    for module, group in groupby(entries(), key=lambda entry: entry.module):
        counts = Counter(entry.status for entry in group)
        totals += counts
        lines.append(_row(f"`{module.replace('pyflink', 'firesteel', 1)}`", counts))
    lines.append(_row("all", totals))
    return "\n".join(lines) + "\n"


def _row(title: str, counts: Counter[Status]) -> str:
    numbers = " | ".join(str(counts[status]) for status in Status)
    return f"| {title} | {numbers} |"


def _gaps() -> str:
    lines = [
        "## Names that do not work, and the reasons",
        "",
        "Left out here, and counted as *never*: constructors that take a Java object, and the",
        "`get_java_*` methods that hand one out. A class that is named stands for all its members.",
        "",
    ]
    missing = [
        entry
        for entry in entries()
        if entry.status is not Status.WORKS and not _is_about_java_objects(entry)
    ]
    for module, group in groupby(missing, key=lambda entry: entry.module):
        if module in {"pyflink.common", "pyflink.datastream", "pyflink.datastream.connectors"}:
            continue  # they only pass names on
        lines += [f"### {module.replace('pyflink', 'firesteel', 1)}", ""]
        lines += ["| name | status | reason |", "|---|---|---|"]
        lines += [
            f"| {names} | {status.value} | {reason} |" for names, status, reason in _table(group)
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _is_about_java_objects(entry: Entry) -> bool:
    return entry.evidence is Evidence.WRAPPER or entry.member.startswith("get_java_")


def _table(group: Iterable[Entry]) -> list[tuple[str, Status, str]]:
    """One row for each status and reason, with all names that share them."""
    rows: dict[tuple[Status, str], list[str]] = {}
    whole: dict[str, Status] = {}
    for entry in group:
        if not entry.member:
            whole[entry.name] = entry.status
        elif whole.get(entry.name) is entry.status:
            continue  # the class as a whole has been named
        name = f"{entry.name}.{entry.member}" if entry.member else entry.name
        rows.setdefault((entry.status, entry.reason()), []).append(f"`{name}`")
    return [(", ".join(names), status, reason) for (status, reason), names in rows.items()]


if __name__ == "__main__":
    PAGE.write_text(page())
