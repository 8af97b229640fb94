"""Facts that describe a measurement: the machine, its load, and the revision."""

import os
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers.catalog import ROOT

Facts = dict[str, str | int | float]


def machine_facts() -> Facts:
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
        "loop_nanoseconds": round(loop_nanoseconds(), 1),
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def loop_nanoseconds() -> float:
    """Measure one pass through a plain Python loop, to compare machines and days."""
    passes = 1_000_000
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        total = 0
        for number in range(passes):
            total += number
        best = min(best, time.perf_counter() - begin)
    return best / passes * 1e9


def is_busy(facts: Facts) -> bool:
    return float(facts["load"]) > 0.5 * float(facts["cores"])


def revision() -> str:
    """Return the measured commit, with a plus sign if the tree has changes."""
    try:
        commit = git("rev-parse", "--short", "HEAD")
        return commit + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def git(*arguments: str) -> str:
    answer = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


def sum_by_part(figure: Callable[[Path], float]) -> dict[str, float]:
    """Sum a figure over the processes of this run: the driver, the JVM and the Python workers.

    figure: takes the directory of a process under /proc.
    """
    session, sums = os.getsid(0), {"driver": 0.0, "JVM": 0.0, "workers": 0.0}
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        try:
            if os.getsid(pid) != session:
                continue
            command = (entry / "cmdline").read_bytes().split(b"\0")[0]
            found = figure(entry)
        except OSError:
            # The process has ended.
            continue
        is_java = command.endswith(b"java")
        sums["JVM" if is_java else "driver" if pid == os.getpid() else "workers"] += found
    return sums
