"""The epoch server of the driver answers only clients that know its token."""

from __future__ import annotations

import stat
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import pytest

from firesteel.spark.epoch_server import EpochServer


class _Epochs:
    def next_epoch(self, after: int) -> int:
        return after + 1

    def plan_of(self, epoch: int) -> Any:
        raise NotImplementedError


def test_a_stranger_is_turned_away_and_the_next_one_served() -> None:
    server = EpochServer("0123456789abcdef", _Epochs())
    try:
        assert stat.S_IMODE(Path(server.address).parent.stat().st_mode) == 0o700
        with pytest.raises(AuthenticationError):
            Client(server.address, authkey=b"guessed")
        with Client(server.address, authkey=server.token.encode()) as client:
            client.send(("next", 4))
            assert client.recv() == 5
    finally:
        server.close()
    assert not Path(server.address).parent.exists()
