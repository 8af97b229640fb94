"""The address at which slots reach the driver."""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing.connection import Client, Connection


@dataclass(frozen=True, slots=True)
class DriverAddress:
    """The socket of the driver: a path, or a host and a port. ``token`` opens it."""

    address: str | tuple[str, int]
    token: str

    @property
    def family(self) -> str:
        return "AF_UNIX" if isinstance(self.address, str) else "AF_INET"

    def connect(self) -> Connection:
        return Client(self.address, family=self.family, authkey=self.token.encode())
