"""A session that is one of several masters: leads, or stands by with its Spark session up."""

from __future__ import annotations

import hashlib
import hmac
import logging
import threading

from firesteel.common.configuration import Configuration
from firesteel.config import checkpoint_options, rest_options
from firesteel.dispatcher.job_store import ARCHIVE, CHECKPOINTS, JobStore
from firesteel.dispatcher.session import SessionDispatcher
from firesteel.errors import FiresteelError, LeadershipLostError
from firesteel.leader.services import HighAvailability, Listener, Member
from firesteel.leader.settings import LeaderSettings

_log = logging.getLogger("firesteel")

# A master looks this often whether a different one leads, until one does.
_LOOK_SECONDS = 1.0


def with_shared_directories(
    configuration: Configuration, settings: LeaderSettings
) -> Configuration:
    """Return the settings of a session whose checkpoints and archive outlive this master."""
    changed = Configuration(configuration)
    for option, name in (
        (checkpoint_options.CHECKPOINT_DIR, CHECKPOINTS),
        (rest_options.ARCHIVE_DIR, ARCHIVE),
    ):
        if not changed.contains(option):
            changed.set_string(option.key, f"{settings.directory}/{name}")
    return changed


def shared_token(settings: LeaderSettings) -> str:
    """Return the token of a session whose settings have none. It is the same on all masters."""
    return hmac.new(settings.key, b"token of clients", hashlib.sha256).hexdigest()


class SessionLeadership:
    """Lets a session stand for election, and tells it when it leads.

    Args:
        dispatcher: The session.
        settings: The settings of the group of masters.
    """

    def __init__(self, dispatcher: SessionDispatcher, settings: LeaderSettings) -> None:
        self._dispatcher = dispatcher
        self._settings = settings
        self._services: HighAvailability = settings.open()
        self._url = ""
        # The term in which this master leads and has taken over all jobs.
        self._ready_term: int | None = None
        self._stands = threading.Event()
        self._closed = threading.Event()
        dispatcher.stand_by()

    def stand(self, url: str) -> None:
        """Become a candidate. ``url`` is the address of this master.

        Raises HighAvailabilityError if the leader has a different version.
        """
        self._url = url
        self._election = self._services.contend(Member(), Listener(self._granted, self._revoked))
        self._stands.set()
        threading.Thread(target=self._warm_up, name="firesteel-warm-up", daemon=True).start()

    def _warm_up(self) -> None:
        """Make a standby warm, once a different master leads. The first job of a leader does so."""
        while self._ready_term is None and not self._closed.is_set():
            if self.leader() is not None:
                self._dispatcher.warm_up()
                return
            self._closed.wait(_LOOK_SECONDS)

    def term(self) -> int | None:
        """Return the term in which this master leads and has taken over all jobs, or None."""
        return self._ready_term

    def leader(self) -> str | None:
        """Return the address of a different master that leads."""
        try:
            found = self._services.leader()
        except (FiresteelError, OSError) as error:
            _log.debug("the leader is not known: %s", error)
            return None
        return None if found is None or found.url == self._url else found.url

    def _granted(self, term: int) -> None:
        # The call may come before the election is known here.
        self._stands.wait()
        try:
            self._dispatcher.lead(JobStore(self._settings, self._services, term))
            # The entries of an ended term are gone, and with them perhaps some jobs.
            self._services.store(term).check()
            self._election.announce(self._url)
        except LeadershipLostError as error:
            # The next call is that of the revocation.
            _log.warning("%s", error)
            return
        except (FiresteelError, OSError):
            # A leader that cannot read its jobs would keep others from leading.
            _log.exception("this master cannot take over the jobs, so it ends")
            self._dispatcher.stop_requested.set()
            return
        self._ready_term = term
        _log.info("this master has taken over all jobs (term %d)", term)

    def _revoked(self, term: int, reason: str) -> None:
        self._ready_term = None
        self._dispatcher.step_down(reason)

    def close(self) -> None:
        """Stand by no longer. Call it when no job of this master runs any more."""
        self._ready_term = None
        self._closed.set()
        self._election.close()
        self._services.close()
