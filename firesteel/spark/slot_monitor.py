"""The monitor of a live slot: reports its work to the driver, and answers questions about it."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

from firesteel.logs import ProcessLogs
from firesteel.processes import thread_stacks
from firesteel.protocol.messages import encode
from firesteel.protocol.reports import REPORT_MARK, SlotAnswer, SlotQuestion
from firesteel.spark.live_inbox import LiveInbox, ThreadedInbox
from firesteel.task.live_slot import LiveSlot, UnloadedLiveSlot

_log = logging.getLogger("firesteel")

_INTERVAL_SECONDS = 1.0
# The time between two samples of a flame graph: 100 samples a second.
_SAMPLE_SECONDS = 0.01
_LONGEST_SAMPLING_SECONDS = 60.0

Stack = tuple[str, ...]


class SlotMonitor(threading.Thread):
    """Reports every second, also while a function of the user works on a record.

    slot: the slot, which runs in the thread that creates the monitor.
    inbox: the inbox of the slot.
    logs: the log and the output of the process.
    send: sends a message to the driver.
    """

    def __init__(
        self,
        slot: LiveSlot | UnloadedLiveSlot,
        inbox: LiveInbox | ThreadedInbox,
        logs: ProcessLogs,
        send: Callable[[bytes], None],
    ) -> None:
        super().__init__(name="firesteel-monitor", daemon=True)
        self._slot = slot
        self._inbox = inbox
        self._logs = logs
        self._send = send
        self._worker = threading.get_ident()
        self._worker_native_id = threading.get_native_id()
        self._questions: SimpleQueue[SlotQuestion | None] = SimpleQueue()

    def ask(self, question: SlotQuestion) -> None:
        self._questions.put(question)

    def stop(self) -> None:
        self._questions.put(None)

    def run(self) -> None:
        try:
            while True:
                self._report()
                question = self._next_question()
                if question is None:
                    return
        except OSError:
            # The attempt is over, or the driver is gone.
            return
        except Exception:  # noqa: BLE001 - the job continues without metrics
            _log.exception("the metrics of a slot can no longer be reported")

    def _next_question(self) -> bool | None:
        """Answer a question, or wait until the next report is due. None ends the monitor."""
        try:
            question = self._questions.get(timeout=_INTERVAL_SECONDS)
        except Empty:
            return True
        if question is None:
            return None
        threading.Thread(target=self._answer, args=(question,), daemon=True).start()
        return True

    def _report(self) -> None:
        report = self._slot.report(self._inbox.usage)
        self._send(REPORT_MARK + encode(report))

    def _answer(self, question: SlotQuestion) -> None:
        try:
            answer: Any = self._find_answer(question)
        except Exception as error:  # noqa: BLE001 - the driver gets it
            _log.warning("a question about a slot has no answer", exc_info=True)
            answer = {"error": f"{type(error).__name__}: {error}"}
        try:
            self._send(REPORT_MARK + encode(SlotAnswer(question.number, answer)))
        except OSError:
            return

    def _find_answer(self, question: SlotQuestion) -> Any:
        if question.what == "stacks":
            return self._sample(float(question.arguments["seconds"]))
        if question.what == "threads":
            return thread_stacks()
        if question.what == "log":
            return {name: self._logs.text(name) for name in ("log", "out")}
        raise ValueError(f"unknown question {question.what!r}")

    def _sample(self, seconds: float) -> dict[str, Any]:
        """Sample the stack of the slot. Each stack goes from the outermost function inward."""
        stacks: Counter[tuple[Stack, bool]] = Counter()
        runnable_seconds = _runnable_clock(self._worker, self._worker_native_id)
        now, used = time.monotonic(), runnable_seconds()
        until = now + min(seconds, _LONGEST_SAMPLING_SECONDS)
        while now < until:
            frame = sys._current_frames().get(self._worker)  # noqa: SLF001 - no public way
            functions = () if frame is None else _stack_of(frame)
            before, used_before = now, used
            time.sleep(_SAMPLE_SECONDS)
            now, used = time.monotonic(), runnable_seconds()
            on_cpu = used - used_before >= 0.5 * (now - before)
            stacks[functions, on_cpu] += 1
        return {
            "stacks": [
                {"functions": list(functions), "on_cpu": on_cpu, "samples": samples}
                for (functions, on_cpu), samples in stacks.items()
            ]
        }


def _runnable_clock(ident: int, native_id: int) -> Callable[[], float]:
    """Return a clock of the seconds that a thread has run or could have run.

    On a busy machine a thread that computes also waits for a processor. Linux counts both times.
    Elsewhere the clock counts only the time on a processor.
    """
    path = Path(f"/proc/self/task/{native_id}/schedstat")
    if not path.exists():
        clock = time.pthread_getcpuclockid(ident)
        return lambda: time.clock_gettime(clock)

    def read() -> float:
        ran, waited, _ = path.read_text().split()
        return (int(ran) + int(waited)) / 1e9

    return read


def _stack_of(frame: FrameType) -> Stack:
    """Return the functions of a stack with their lines, without those of PySpark around the slot."""
    functions = []
    current: FrameType | None = frame
    while current is not None and current.f_globals.get("__name__") != __package__ + ".live_task":
        module = current.f_globals.get("__name__", "?")
        functions.append(f"{module}.{current.f_code.co_qualname}:{current.f_lineno}")
        current = current.f_back
    return tuple(reversed(functions))
