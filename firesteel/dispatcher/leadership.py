"""A session that is one of several masters: leads, or stands by with its Spark session up."""

from __future__ import annotations

import hashlib
import hmac
import logging
import threading
from functools import partial

from firesteel.common.configuration import Configuration
from firesteel.config import checkpoint_options, rest_options
from firesteel.dispatcher.job_store import ARCHIVE, CHECKPOINTS, JobStore
from firesteel.dispatcher.session import SessionDispatcher
from firesteel.errors import FiresteelError, LeadershipLostError
from firesteel.leader.services import (
    DifferentVersionError,
    Election,
    HighAvailability,
    Listener,
    Member,
)
from firesteel.leader.settings import LeaderSettings

_log = logging.getLogger("firesteel")

# A master looks this often whether a different one leads, until one does.
_LOOK_SECONDS = 1.0
# A master that could not take over the jobs stands for election again after this time.
_PAUSE_SECONDS = 5.0


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
        self._election: Election | None = None
        # A master that gives a term up ignores all further calls about this candidacy.
        self._candidacy = 0
        self._stands = threading.Event()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        dispatcher.stand_by()

    def stand(self, url: str) -> None:
        """Become a candidate. ``url`` is the address of this master.

        Raises DifferentVersionError if the leader has a different version.
        """
        self._url = url
        self._contend()
        threading.Thread(target=self._warm_up, name="firesteel-warm-up", daemon=True).start()

    def _contend(self) -> None:
        self._stands.clear()
        listener = Listener(
            partial(self._granted, self._candidacy), partial(self._revoked, self._candidacy)
        )
        self._election = self._services.contend(Member(), listener)
        self._stands.set()

    def _warm_up(self) -> None:
        """Make a standby warm, once a different master leads. The first job of a leader does so."""
        while self._ready_term is None and not self._closed.is_set():
            if self.leader() is not None:
                if self._fits() and self._ready_term is None:
                    self._dispatcher.warm_up()
                return
            self._closed.wait(_LOOK_SECONDS)

    def _fits(self) -> bool:
        """Return True if the leader has the version of this master. Otherwise this master ends.

        A master learns that late if there was no leader, or a dying one, when it was started.
        """
        try:
            self._services.check_member(Member())
        except DifferentVersionError as error:
            self._refuse(error)
            return False
        except (FiresteelError, OSError) as error:
            _log.debug("the version of the leader is not known: %s", error)
        return True

    def _refuse(self, error: DifferentVersionError) -> None:
        self._dispatcher.failure = error
        self._dispatcher.stop_requested.set()

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

    def _granted(self, candidacy: int, term: int) -> None:
        # The call may come before the election is known here.
        self._stands.wait()
        election = self._election
        if candidacy != self._candidacy or election is None:
            return
        try:
            self._dispatcher.lead(JobStore(self._settings, self._services, term))
            # The entries of an ended term are gone, and with them perhaps some jobs.
            self._services.store(term).check()
            election.announce(term, self._url)
        except LeadershipLostError as error:
            # The next call is that of the revocation.
            _log.warning("%s", error)
            return
        except Exception as error:  # noqa: BLE001 - no error may leave a leader without jobs
            # A leader that cannot read its jobs would keep others from leading.
            _log.exception("this master cannot take over the jobs, so others may try first")
            self._candidacy += 1
            self._dispatcher.step_down(str(error))
            threading.Thread(
                target=self._stand_again, name="firesteel-stand-again", daemon=True
            ).start()
            return
        self._ready_term = term
        _log.info("this master has taken over all jobs (term %d)", term)

    def _stand_again(self) -> None:
        """Give the term up, and become a candidate once others had the time to take over."""
        with self._lock:
            self._close_election()
        while not self._closed.wait(_PAUSE_SECONDS):
            with self._lock:
                if self._closed.is_set():
                    return
                try:
                    self._contend()
                except DifferentVersionError as error:
                    self._refuse(error)
                    return
                except (FiresteelError, OSError) as error:
                    _log.warning("this master is no candidate yet: %s", error)
                else:
                    return

    def _close_election(self) -> None:
        election, self._election = self._election, None
        if election is not None:
            election.close()

    def _revoked(self, candidacy: int, term: int, reason: str) -> None:
        if candidacy != self._candidacy:
            return
        self._ready_term = None
        self._dispatcher.step_down(reason)

    def close(self) -> None:
        """Stand by no longer. Call it when no job of this master runs any more."""
        self._ready_term = None
        self._closed.set()
        with self._lock:
            self._close_election()
        self._services.close()
