"""The turns of a peer: it reads a query per line of input, runs it, and reports its figures."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

from benchmarks.nexmark.processes import CpuMeter

Run = Callable[[str, str], None]


def take_turns(run: Run) -> None:
    """Run the queries that the runner asks for.

    run: runs a query, given its name, on the events of a directory.
    """
    # Whatever the engine prints must not mix with the reports.
    reports = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    meter = CpuMeter(os.getpid())
    print(json.dumps({"ready": True}), file=reports, flush=True)
    for line in sys.stdin:
        query, directory = line.split()
        used, began = meter.seconds(), time.perf_counter()
        try:
            run(query, directory)
        except Exception as error:  # noqa: BLE001 - the runner shows it and continues
            figures: dict[str, object] = {"failed": f"{type(error).__name__}: {error}"[:300]}
        else:
            seconds = time.perf_counter() - began
            figures = {"seconds": seconds, "cpu": meter.seconds() - used}
        print(json.dumps(figures), file=reports, flush=True)
