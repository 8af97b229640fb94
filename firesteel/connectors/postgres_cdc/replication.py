"""A streaming replication connection, through psycopg's layer above libpq.

psycopg 3 has no replication protocol of its own. The few messages it takes are here: polling
``pg_logical_slot_peek_binary_changes`` instead would decode all changes since the last checkpoint
again with each poll.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping

from psycopg import OperationalError, conninfo, pq

from firesteel.connectors.postgres_cdc.pgoutput import Message, decode, format_lsn

__all__ = ["ReplicationStream"]

# Microseconds between 1970 and 2000, where PostgreSQL's clock begins.
_EPOCH = 946_684_800_000_000
_STATUS_SECONDS = 5.0


class ReplicationStream:
    """The changes of a slot from a position. All calls return at once."""

    def __init__(
        self, arguments: Mapping[str, str], slot: str, publication: str, start: int
    ) -> None:
        """Start streaming.

        Args:
            arguments: Parameters of libpq.
            slot: The name of the replication slot.
            publication: The name of the publication.
            start: The position in the log. The server begins at the confirmed position of the slot
                if it is later.
        """
        # psycopg reads dates in ISO format.
        options = f"{arguments.get('options', '')} -c datestyle=ISO -c intervalstyle=postgres"
        text = conninfo.make_conninfo(
            **{**arguments, "replication": "database", "options": options.strip()}
        )
        self._connection = pq.PGconn.connect(text.encode())
        # The start may be past the last checkpoint: only ``confirm`` releases the log.
        self._confirmed = 0
        self._received = start
        self._next_status = 0.0
        if self._connection.status != pq.ConnStatus.OK:
            raise OperationalError(self._error())
        name = publication.replace('"', '""').replace("'", "''")
        result = self._connection.exec_(
            f'START_REPLICATION SLOT "{slot}" LOGICAL {format_lsn(start)} '
            f"(proto_version '1', publication_names '\"{name}\"')".encode()
        )
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise OperationalError(result.error_message.decode(errors="replace").strip())

    def messages(self, limit: int) -> Iterator[Message | int]:
        """Return messages that have come: at most ``limit``, and never wait.

        A number is a position: the server has sent everything before it.
        """
        connection = self._connection
        connection.consume_input()
        self._report()
        for _ in range(limit):
            size, data = connection.get_copy_data(1)
            if size == 0:
                return
            if size < 0:
                raise OperationalError(self._error() or "the server has ended the stream")
            raw = bytes(data)
            if raw[:1] == b"w":
                message = decode(raw[25:])
                if message is not None:
                    yield message
            elif raw[:1] == b"k":
                end, _, wants_reply = struct.unpack_from(">QQB", raw, 1)
                self._received = max(self._received, end)
                if wants_reply:
                    self._next_status = 0.0
                    self._report()
                yield end

    def confirm(self, lsn: int) -> None:
        """Tell the server that everything before a position is safe, so that it may forget it."""
        if lsn > self._confirmed:
            self._confirmed = lsn
            self._next_status = 0.0
            self._report()

    def close(self) -> None:
        self._connection.finish()

    def _report(self) -> None:
        now = time.monotonic()
        if now < self._next_status:
            return
        self._next_status = now + _STATUS_SECONDS
        clock = time.time_ns() // 1000 - _EPOCH
        received = max(self._received, self._confirmed)
        self._connection.put_copy_data(
            b"r" + struct.pack(">QQQQB", received, self._confirmed, self._confirmed, clock, 0)
        )
        self._connection.flush()

    def _error(self) -> str:
        return self._connection.error_message.decode(errors="replace").strip()
