"""The dispatcher of a history server: jobs of an archive, and none that run."""

from __future__ import annotations

import threading

from firesteel.common.configuration import Configuration
from firesteel.config import rest_options
from firesteel.dispatcher.archive import Archive
from firesteel.dispatcher.dispatcher import Dispatcher, Slots
from firesteel.dispatcher.job_handle import JobHandle
from firesteel.errors import ConfigurationError
from firesteel.filesystems.settings import file_system_options

_MOST_JOBS = 1000


class HistoryDispatcher(Dispatcher):
    """Shows the jobs of an archive, and looks for new ones from time to time."""

    is_history = True

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        location = configuration.get(rest_options.HISTORY_ARCHIVE) or configuration.get(
            rest_options.ARCHIVE_DIR
        )
        if location is None:
            raise ConfigurationError(
                f"Set {rest_options.HISTORY_ARCHIVE.key} to the directory of the archived jobs. Sessions "
                f"write it if {rest_options.ARCHIVE_DIR.key} names it.",
                key=rest_options.HISTORY_ARCHIVE.key,
            )
        self._shown = Archive(location, file_system_options(configuration))
        retained = configuration.get(rest_options.HISTORY_RETAINED)
        self._retained = _MOST_JOBS if retained < 0 else min(retained, _MOST_JOBS)
        self._interval = configuration.get(rest_options.HISTORY_REFRESH).total_seconds()
        self._ending = threading.Event()
        self.refresh()
        threading.Thread(target=self._look, name="firesteel-history", daemon=True).start()

    def refresh(self) -> None:
        """Read the jobs that are new in the archive, and forget those that are gone from it."""
        wanted = self._shown.job_ids()[: self._retained]
        with self._lock:
            known = dict(self._jobs)
        jobs: dict[str, JobHandle] = {}
        for job_id in reversed(wanted):
            job = known.get(job_id) or self._shown.read(job_id)
            if job is not None:
                jobs[job_id] = job
        with self._lock:
            self._jobs = jobs

    def _look(self) -> None:
        while not self._ending.wait(self._interval):
            self.refresh()

    def slots(self) -> Slots:
        return Slots(0, {})

    def close(self) -> None:
        self._ending.set()
        super().close()
