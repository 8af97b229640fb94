"""Samples of processes and files: memory, threads, handles. Read from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_MB = 1 << 20
# Two pools of Spark with up to 100 and 128 threads, which end when they are idle for a minute.
_POOLS = "block-manager-"

_Children = dict[int, list[tuple[int, str]]]


@dataclass(slots=True)
class Usage:
    """Resources of one process, or of several together. Memory is in megabytes."""

    processes: int = 0
    memory: float = 0.0
    threads: int = 0
    handles: int = 0

    def add(self, pid: int) -> None:
        try:
            self.memory += _own_bytes(pid) / _MB
            self.threads += sum(not name.startswith(_POOLS) for name in _thread_names(pid))
            self.handles += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            # It has just ended.
            return
        self.processes += 1


@dataclass(slots=True)
class Sample:
    """Resources of a driver with its processes, ``seconds`` after the beginning."""

    seconds: float
    driver: Usage = field(default_factory=Usage)
    jvm: Usage = field(default_factory=Usage)
    # Spark's daemon, which forks the processes of slots. They share its pages until one of
    # them writes to them, so it has more memory of its own while no slot runs.
    daemon: Usage = field(default_factory=Usage)
    slots: Usage = field(default_factory=Usage)
    files: int = 0


def take_sample(driver: int, seconds: float, directories: list[Path]) -> Sample:
    """Read the resources of a driver, of its JVM, and of the Python processes below that."""
    sample = Sample(seconds)
    sample.driver.add(driver)
    children = _children()
    daemons = {
        pid
        for jvm, name in _below(children, driver)
        if name == "java"
        for pid, _ in children.get(jvm, [])
    }
    for pid, command in _below(children, driver):
        if command == "java":
            sample.jvm.add(pid)
        elif pid in daemons:
            sample.daemon.add(pid)
        else:
            sample.slots.add(pid)
    sample.files = sum(len(names) for path in directories for _, _, names in os.walk(path))
    return sample


def processes_below(pid: int) -> list[tuple[int, str]]:
    """Return the processes that one has started, directly or not, with their names."""
    return _below(_children(), pid)


def _below(children: _Children, pid: int) -> list[tuple[int, str]]:
    found = list(children.get(pid, []))
    for child, _ in found:
        found.extend(children.get(child, []))
    return found


def _children() -> _Children:
    """Return the processes of this machine by their parents."""
    children: _Children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            name = text[text.index("(") + 1 : text.rindex(")")]
            parent = int(text.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append((int(entry), name))
    return children


def _thread_names(pid: int) -> Iterator[str]:
    for thread in os.listdir(f"/proc/{pid}/task"):
        with suppress(OSError):
            yield Path(f"/proc/{pid}/task/{thread}/comm").read_text()


def _own_bytes(pid: int) -> int:
    """Return the memory that a process alone has written.

    Its part of shared pages, such as those of libraries, depends on the other processes.
    """
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    figures = {name: rest.split()[0] for name, _, rest in (line.partition(":") for line in lines)}
    return (int(figures.get("Private_Dirty", 0)) + int(figures.get("Swap", 0))) * 1024
