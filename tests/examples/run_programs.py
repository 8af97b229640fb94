"""Runs programs one after the other in this process, so that they share one Spark session.

Reads a JSON list of command lines from standard input. On standard output a line of its own goes before
each program (`=== number`) and after each (`--- number ok`, or `failed`).
"""

from __future__ import annotations

import json
import runpy
import sys
import traceback


def main() -> None:
    for number, command in enumerate(json.load(sys.stdin)):
        print(f"=== {number}", flush=True)
        sys.argv = command
        try:
            runpy.run_path(command[0], run_name="__main__")
            outcome = "ok"
        except BaseException:
            traceback.print_exc()
            outcome = "failed"
        print(f"--- {number} {outcome}", flush=True)


if __name__ == "__main__":
    main()
