"""History of all runs: one line of JSON per run in history.jsonl."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.machine import Facts, revision
from benchmarks.runner import PeerResult

HISTORY = Path(__file__).parent / "history.jsonl"


def entry(results: Sequence[PeerResult], facts: Facts, settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "revision": revision(),
        "machine": facts,
        "settings": settings,
        "peers": {
            result.peer.name: {
                "versions": result.versions,
                "cases": result.cases,
                "sections": result.sections,
                "problem": result.problem,
            }
            for result in results
        },
    }


def append(line: dict[str, Any]) -> None:
    with HISTORY.open("a") as history:
        history.write(json.dumps(rounded(line)) + "\n")


def rounded(value: Any) -> Any:
    """Round floats to four digits, which is more than the precision of a measurement."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return value
