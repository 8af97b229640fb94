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

Use this page to check which names of PyFlink work in Firesteel. Change `pyflink` to `firesteel` in
the imports: a name that works behaves as in PyFlink. Any other name raises an error with the
reason, at the import or when the program is built.

`python -m tests.compat.report` generates this page, and a test fails if it is out of date. A name
is a class, a function, or a member of a class. A member counts once, where its class is defined.
`tests/compat` checks each name that works: it exists, and it takes PyFlink's parameters in
PyFlink's order, except for Java objects.

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
        "A class in this list stands for all of its members. The list leaves out constructors that",
        "take a Java object and `get_java_*` methods, which return one. Both count as *never*.",
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
