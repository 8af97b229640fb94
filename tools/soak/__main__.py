"""Runs the soak. ``make soak SOAK_ARGS='--minutes 20 --seed 7'`` or ``python -m tools.soak``."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import traceback
from dataclasses import asdict
from pathlib import Path

from tools.soak.plot import write_plot
from tools.soak.supervisor import Course, Plan, Soak, SoakError
from tools.soak.verdict import slopes, table
from tools.soak.workload import Place, check


def run(plan: Plan, root: Path) -> tuple[Course, list[str]]:
    """Run a soak below ``root``. Return what was seen, and the findings, which must be none."""
    soak = Soak(plan, root, _say)
    try:
        course = soak.run()
    except SoakError as error:
        return soak.course, [str(error)]
    except Exception:  # noqa: BLE001 - the samples so far are worth a plot
        return soak.course, [traceback.format_exc()]
    findings = check(Place(root), plan.input_seconds)
    _say(f"{findings.records} results were compared")
    steep = [slope for slope in slopes(course) if not slope.is_good]
    return course, findings.texts + [
        f"{slope.series.title} grows by {slope.per_minute:.2f} {slope.series.unit} a minute"
        for slope in steep
    ]


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--execution", choices=("auto", "real-time", "micro-batch"), default="auto")
    parser.add_argument("--plot", type=Path, help="the SVG file to write")
    parser.add_argument("--samples", type=Path, help="the JSON file to write samples to")
    parser.add_argument("--keep", action="store_true", help="keep the files of the run")
    options = parser.parse_args()
    plan = Plan(options.seed, int(options.minutes * 60), options.execution)
    root = Path(tempfile.mkdtemp(prefix="soak-"))
    course, findings = run(plan, root)
    if options.plot:
        write_plot(course, options.plot)
    if options.samples:
        options.samples.write_text(json.dumps(asdict(course)))
    counts = ", ".join(f"{name} {count}" for name, count in sorted(course.counts.items()))
    _say(f"seed {plan.seed}, {plan.seconds} s, {course.submissions} submissions, faults: {counts}")
    _say(table(slopes(course)))
    for finding in findings:
        _say(f"FOUND: {finding}")
    if options.keep or findings:
        _say(f"files: {root}")
    else:
        shutil.rmtree(root)
        _say("Nothing was lost, nothing was doubled, and nothing grows.")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
