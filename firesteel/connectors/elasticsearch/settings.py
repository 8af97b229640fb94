"""Settings of an ElasticsearchSink: bulk requests, retries, and the connection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

__all__ = ["BulkSettings", "ConnectionSettings", "FlushBackoffType"]

_MEGABYTE = 1024 * 1024


class FlushBackoffType(Enum):
    """The waiting time before a sink repeats a bulk request.

    CONSTANT waits the same time before each repetition. EXPONENTIAL waits longer each time. NONE
    does not repeat requests, so the job fails and its restart strategy applies.

    >>> from firesteel.datastream.connectors.elasticsearch import FlushBackoffType
    >>> [kind.name for kind in FlushBackoffType]
    ['CONSTANT', 'EXPONENTIAL', 'NONE']
    """

    CONSTANT = 0
    EXPONENTIAL = 1
    NONE = 2


@dataclass(frozen=True, slots=True)
class BulkSettings:
    """Limits of a bulk request, and its repetitions. A limit of -1 is none."""

    max_actions: int = 1000
    max_megabytes: int = 5
    interval_millis: int = -1
    backoff: FlushBackoffType = FlushBackoffType.NONE
    retries: int = 0
    delay_millis: int = 0

    @property
    def max_bytes(self) -> float:
        return math.inf if self.max_megabytes == -1 else self.max_megabytes * _MEGABYTE

    @property
    def most_actions(self) -> float:
        return math.inf if self.max_actions == -1 else self.max_actions

    def pause(self, attempt: int) -> float:
        """Return the seconds to wait after an attempt. The first attempt has the number 0."""
        millis = self.delay_millis
        if self.backoff is FlushBackoffType.EXPONENTIAL:
            # The formula of Elasticsearch's own client.
            millis += 10 * (int(math.exp(0.8 * attempt)) - 1)
        return millis / 1000


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The servers, the user, and the times to wait. The defaults are those of Flink's client."""

    hosts: tuple[str, ...] = ()
    user_name: str | None = None
    password: str | None = None
    path_prefix: str = ""
    connect_millis: int = 1000
    socket_millis: int = 30_000
