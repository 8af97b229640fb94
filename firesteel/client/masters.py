"""The masters of a session, for clients: finds the one that leads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress

from firesteel.common.configuration import Configuration
from firesteel.errors import FiresteelError
from firesteel.leader.services import HighAvailability
from firesteel.leader.settings import LeaderSettings, leader_settings

_log = logging.getLogger("firesteel")


class Masters:
    """Addresses of masters: those of the settings, and the leader that the masters have elected.

    Args:
        addresses: URLs of masters, the preferred one first.
        settings: The settings of the group of masters, if the client has them.
    """

    def __init__(self, addresses: Sequence[str], settings: LeaderSettings | None) -> None:
        self._addresses = list(addresses)
        self._settings = settings
        self._services: HighAvailability | None = None
        self._lock = threading.Lock()
        self._next = 0

    @property
    def are_several(self) -> bool:
        return self._settings is not None or len(self._addresses) > 1

    def leader(self) -> str | None:
        """Return the address of the leader, if the settings tell how to find it."""
        if self._settings is None:
            return None
        with self._lock:
            try:
                if self._services is None:
                    self._services = self._settings.open()
                leader = self._services.leader()
            except (FiresteelError, OSError) as error:
                _log.debug("the leader is not known: %s", error)
                return None
        return None if leader is None else leader.url

    def another(self, failed: str) -> str:
        """Return an address to try after one has failed. It may be the same one."""
        leader = self.leader()
        if leader is not None and leader != failed:
            return leader
        if not self._addresses:
            return leader or failed
        with self._lock:
            self._next = (self._next + 1) % len(self._addresses)
            return self._addresses[self._next]

    def close(self) -> None:
        if self._services is not None:
            with suppress(FiresteelError):
                self._services.close()


def masters_of(configuration: Configuration, addresses: Sequence[str]) -> Masters:
    """Return the masters that the settings and the given addresses name."""
    return Masters(addresses, leader_settings(configuration))
