"""Profiles on request: the functions of a task manager or the driver that use its time.

The calls are those of Flink's profiler. A profile is a page of HTML without scripts.
"""

from __future__ import annotations

import html
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from starlette.responses import HTMLResponse

from firesteel.errors import FiresteelError
from firesteel.rest import models
from firesteel.rest.calls import Call, RestError
from firesteel.rest.flame_graphs import Sample, tree_of
from firesteel.rest.job_view import now_millis
from firesteel.rest.task_managers import find_process
from firesteel.sampling import sample_stacks

# Flink's modes that a sampler of Python can have, each with a rule for the samples that count.
_MODES: dict[str, Callable[[Sample], bool]] = {
    "CPU": lambda sample: sample["on_cpu"],
    "ITIMER": lambda sample: sample["on_cpu"],
    "WALL": lambda _: True,
}
# Flink's default of rest.profiling.duration-max, and of rest.profiling.history-size.
_LONGEST_SECONDS = 300
_HISTORY = 10
# Task managers whose profiles are kept.
_MOST_PROCESSES = 100
_DRIVER = "jobmanager"
_HOT_FUNCTIONS = 30
# A part of a flame graph that is narrower than this share is not drawn.
_NARROWEST = 0.002


@dataclass(slots=True)
class _Profile:
    info: models.Profile
    page: str = ""


@dataclass(slots=True)
class Profiles:
    """The newest profiles by process, the newest first."""

    _known: dict[str, deque[_Profile]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(
        self, process: str, mode: str, seconds: int, sample: Callable[[], Future[Any]]
    ) -> models.Profile:
        """Begin a profile. ``sample`` begins to sample the process."""
        profile = _Profile(
            {
                "status": "RUNNING",
                "mode": mode,
                "triggerTime": now_millis(),
                "finishedTime": None,
                "duration": seconds,
                "message": None,
                "outputFile": None,
            }
        )
        with self._lock:
            known = self._known.setdefault(process, deque(maxlen=_HISTORY))
            if known and known[0].info["status"] == "RUNNING":
                raise RestError(409, f"{process} is still under profiling.")
            known.appendleft(profile)
            while len(self._known) > _MOST_PROCESSES:
                del self._known[next(iter(self._known))]
        sample().add_done_callback(lambda done: _finish(profile, process, done))
        return profile.info

    def of(self, process: str) -> list[_Profile] | None:
        """Return the profiles of a process, or None if there are none."""
        with self._lock:
            known = self._known.get(process)
            return None if known is None else list(known)


def _finish(profile: _Profile, process: str, done: Future[Any]) -> None:
    info = profile.info
    info["finishedTime"] = now_millis()
    error = done.exception()
    answer: dict[str, Any] = {"error": error} if error is not None else done.result()
    if "error" in answer:
        info["message"] = f"The process was not sampled: {answer['error']}"
        info["status"] = "FAILED"
        return
    samples = [sample for sample in answer["stacks"] if _MODES[info["mode"]](sample)]
    profile.page = render(process, info, samples)
    at = datetime.fromtimestamp(info["triggerTime"] / 1000, UTC).astimezone()
    info["outputFile"] = f"{process}_{info['mode']}_{at:%Y-%m-%d_%H_%M_%S}.html"
    info["message"] = "Profiling Successful"
    info["status"] = "FINISHED"


# Calls


def _request(call: Call) -> tuple[str, int]:
    mode = call.field("mode", str, "CPU")
    if mode not in _MODES:
        raise RestError(400, f"mode must be one of {', '.join(_MODES)}, got {mode!r}.")
    seconds = call.field("duration", int, 30)
    if not 1 <= seconds <= _LONGEST_SECONDS:
        raise RestError(400, f"duration must be 1 to {_LONGEST_SECONDS} seconds, got {seconds}.")
    return mode, seconds


def profile_worker(call: Call) -> models.Profile:
    process = find_process(call)
    mode, seconds = _request(call)
    job, level, slot = process.place
    return call.profiles.start(
        process.id, mode, seconds, lambda: job.ask_slot(level, slot, "stacks", {"seconds": seconds})
    )


def worker_profiles(call: Call) -> models.ProfileList:
    known = call.profiles.of(call.path["taskmanagerid"])
    if known is None:
        # An error if there is no such process.
        find_process(call)
    return {"profilingList": [profile.info for profile in known or ()]}


def worker_profile(call: Call) -> HTMLResponse:
    return _page(call, call.path["taskmanagerid"])


def profile_driver(call: Call) -> models.Profile:
    mode, seconds = _request(call)
    return call.profiles.start(_DRIVER, mode, seconds, lambda: _sample_driver(seconds))


def driver_profiles(call: Call) -> models.ProfileList:
    return {"profilingList": [profile.info for profile in call.profiles.of(_DRIVER) or ()]}


def driver_profile(call: Call) -> HTMLResponse:
    return _page(call, _DRIVER)


def _sample_driver(seconds: int) -> Future[Any]:
    """Sample all threads of this process but the one that samples."""
    answer: Future[Any] = Future()

    def run() -> None:
        threads = {
            thread.ident: thread.native_id
            for thread in threading.enumerate()
            if thread.ident is not None
            and thread.native_id is not None
            and thread is not threading.current_thread()
        }
        try:
            answer.set_result({"stacks": sample_stacks(threads, seconds)})
        except Exception as error:  # noqa: BLE001 - the profile shows it
            answer.set_exception(FiresteelError(f"{type(error).__name__}: {error}"))

    threading.Thread(target=run, name="firesteel-profiler", daemon=True).start()
    return answer


def _page(call: Call, process: str) -> HTMLResponse:
    name = call.path["filename"]
    for profile in call.profiles.of(process) or ():
        if profile.info["outputFile"] == name:
            return HTMLResponse(
                profile.page,
                headers={
                    "Cache-Control": "no-store",
                    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
                    "X-Content-Type-Options": "nosniff",
                },
            )
    raise RestError(404, f"There is no profile {name!r}")


# The page


def render(process: str, info: models.Profile, samples: Iterable[Sample]) -> str:
    """Return a page with the functions by their own time, and with a flame graph."""
    found = list(samples)
    total = sum(sample["samples"] for sample in found)
    own, whole = _times(found)
    rows = "".join(
        f"<tr><td>{count / total:.1%}<td>{whole[function] / total:.1%}<td>{html.escape(function)}"
        for function, count in own.most_common(_HOT_FUNCTIONS)
    )
    waits = "" if total else "<p>No sample was taken in this mode: the process waited.</p>"
    flames = _flames(tree_of(found), total) if total else ""
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{html.escape(process)}</title>"
        f"<style>{_STYLE}</style><h1>{html.escape(process)}</h1>"
        f"<p>{html.escape(info['mode'])} profile of {info['duration']} s, {total} samples</p>{waits}"
        "<h2>Functions</h2><table><tr><th>itself<th>with its calls<th>function"
        f"{rows}</table><h2>Flame graph</h2><div class='row'>{flames}</div></html>"
    )


def _times(samples: Iterable[Sample]) -> tuple[Counter[str], Counter[str]]:
    """Return the samples of each function: in itself, and with the functions that it calls."""
    own: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    for sample in samples:
        # Without the line numbers.
        functions = [function.rpartition(":")[0] for function in sample["functions"]]
        if functions:
            own[functions[-1]] += sample["samples"]
        for function in set(functions):
            whole[function] += sample["samples"]
    return own, whole


def _flames(node: models.FlameGraphNode, total: int) -> str:
    """Return the functions below a node as boxes. The width is the share of the caller's time."""
    boxes = []
    for child in sorted(node["children"], key=lambda one: -one["value"]):
        if child["value"] / total < _NARROWEST:
            continue
        name = html.escape(child["name"])
        share = child["value"] / node["value"]
        boxes.append(
            f"<div class='box' style='width:{share:.2%}'>"
            f"<span title='{name} {child['value'] / total:.1%}'>{name}</span>"
            f"<div class='row'>{_flames(child, total)}</div></div>"
        )
    return "".join(boxes)


_STYLE = (
    "body{font:14px system-ui,sans-serif;margin:2em;color:#1c1917;background:#fff}"
    "td,th{padding:2px 12px 2px 0;text-align:left;font-variant-numeric:tabular-nums}"
    "td:last-child{font-family:monospace}"
    ".row{display:flex;align-items:flex-start}.box{flex:none;min-width:0;overflow:hidden}"
    ".row span{display:block;font:11px monospace;background:#fdba74;border:1px solid #fff;"
    "border-radius:3px;padding:2px 4px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis}"
)
