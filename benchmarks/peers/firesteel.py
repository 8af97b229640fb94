"""Firesteel: all cases, and the sections named by `--options`.

With the option `micro-batch`, jobs run in micro-batches instead of in real time.
"""

import sys

from benchmarks.measure import parse_arguments, report, report_versions, run_cases
from benchmarks.peers.firesteel_jobs import Firesteel
from benchmarks.sections.catalog import SECTIONS
from firesteel import __version__


def main() -> None:
    arguments = parse_arguments("Firesteel")
    report_versions("pyspark", "pyarrow", firesteel=__version__)
    is_micro_batch = "micro-batch" in arguments.options
    peer = Firesteel(
        arguments.parallelism, {"firesteel.execution": "micro-batch"} if is_micro_batch else {}
    )
    run_cases(arguments, peer.run, peer.run_checked)
    arguments.wait_for_turn("sections")
    for name, section in SECTIONS.items():
        if name not in arguments.options:
            continue
        try:
            section.measure(arguments)
        except Exception as error:  # noqa: BLE001 - one section that fails must not hide the others
            print(f"{name}: {error!r}", file=sys.stderr)
            report(section=name, failed=f"{type(error).__name__}: {error}"[:500])


if __name__ == "__main__":
    main()
