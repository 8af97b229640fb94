"""The monitor of a live slot: reports its work to the driver, and answers questions about it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from firesteel.logs import ProcessLogs
from firesteel.processes import thread_stacks
from firesteel.protocol.messages import encode
from firesteel.protocol.reports import REPORT_MARK, SlotAnswer, SlotQuestion
from firesteel.sampling import sample_stacks
from firesteel.spark.live_inbox import LiveInbox, ThreadedInbox
from firesteel.task.live_slot import LiveSlot, UnloadedLiveSlot

_log = logging.getLogger("firesteel")

_INTERVAL_SECONDS = 1.0


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
            threads = {self._worker: self._worker_native_id}
            seconds = float(question.arguments["seconds"])
            # PySpark's functions around the slot say nothing about the job.
            return {"stacks": sample_stacks(threads, seconds, f"{__package__}.live_task")}
        if question.what == "threads":
            return thread_stacks()
        if question.what == "log":
            return {name: self._logs.text(name) for name in ("log", "out")}
        raise ValueError(f"unknown question {question.what!r}")
