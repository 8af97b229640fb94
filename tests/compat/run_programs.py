"""Runs programs one after the other in this process, so that they share one Spark session.

A line ``=== name`` on standard output goes before each, ``=== name failed`` after one that raised.
"""

from __future__ import annotations

import runpy
import sys
import traceback
from pathlib import Path


def main(paths: list[str]) -> None:
    for path in paths:
        name = Path(path).stem
        print(f"=== {name}", flush=True)
        try:
            runpy.run_path(path, run_name="__main__")
        except Exception:
            traceback.print_exc()
            print(f"=== {name} failed", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
