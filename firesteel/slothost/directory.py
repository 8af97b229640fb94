"""Slot directory: the driver's table of the machines on which slots live, for jobs on a cluster.

Spark may run the task of a slot on a different machine in every epoch. The first task of a slot
claims it for the host on its machine. Later tasks find the host here. If they cannot reach it, the
slot gets a new home. The directory only saves moves: state is correct wherever a slot lives, because
every host compares the state that it has with the state that the driver has confirmed.
"""

from __future__ import annotations

import contextlib
import threading
from multiprocessing.connection import Client, Connection

from firesteel.protocol.messages import SlotAddress
from firesteel.slothost.request_server import RequestServer

Location = tuple[str, int]
"""The network address of a slot host, or of the directory."""
Place = tuple[str, int, int, int]
"""The id of a job, its attempt, and the level and index of a slot."""


def place_of(address: SlotAddress) -> Place:
    return (address.job_id, address.attempt, address.level, address.slot)


class SlotDirectory:
    """Serves the table on the network. Clients must know the token."""

    def __init__(self, host: str, token: str) -> None:
        self._lock = threading.Lock()
        self._homes: dict[Place, Location] = {}
        self._server = RequestServer(
            "slot directory", (host, 0), token, lambda request: self.claim(*request)
        )
        address = self._server.address
        assert isinstance(address, tuple)
        self.location: Location = (str(address[0]), int(address[1]))

    def claim(
        self, place: Place, own: Location | None, instead_of: Location | None
    ) -> Location | None:
        """Return the home of a slot.

        Args:
            place: The slot.
            own: The home to register if the slot has none. None only asks.
            instead_of: A home that does not answer. ``own`` replaces it, if it is still registered.
        """
        with self._lock:
            home = self._homes.get(place)
            if own is not None and home in (None, instead_of):
                home = self._homes[place] = own
            return home

    def forget(self, job_id: str) -> None:
        """Remove the slots of a job that is over."""
        with self._lock:
            for place in [place for place in self._homes if place[0] == job_id]:
                del self._homes[place]

    def close(self) -> None:
        self._server.close()


# The connections of this process, one per directory. A worker asks once per task.
_connections: dict[Location, Connection] = {}
_connections_lock = threading.Lock()


def claim(
    directory: Location,
    token: str,
    place: Place,
    own: Location | None = None,
    *,
    instead_of: Location | None = None,
) -> Location | None:
    """Ask the directory of the driver, see ``SlotDirectory.claim``."""
    question = (place, own, instead_of)
    with _connections_lock:
        connection = _connections.pop(directory, None)
        if connection is not None:
            with contextlib.suppress(EOFError, OSError):
                return _ask(directory, connection, question)
        return _ask(directory, Client(directory, authkey=token.encode()), question)


def _ask(directory: Location, connection: Connection, question: object) -> Location | None:
    connection.send(question)
    answer: Location | None = connection.recv()
    # Kept only after an answer: a broken connection is not used again.
    _connections[directory] = connection
    return answer
