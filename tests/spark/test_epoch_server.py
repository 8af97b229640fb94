"""The epoch server of the driver answers only clients that know its token."""

from __future__ import annotations

import stat
from dataclasses import replace
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import pytest

from firesteel.errors import JobExecutionError
from firesteel.protocol.execution import EpochPlan
from firesteel.protocol.messages import (
    OperatorHandle,
    ReadBudget,
    SlotAddress,
    SlotControl,
    SubtaskHandle,
    decode,
    fetch_handles,
)
from firesteel.spark.epoch_server import EpochServer
from firesteel.state.operator_state import OperatorState, Redistribution


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


def test_handles_stay_in_the_driver_until_a_slot_needs_them() -> None:
    """Rules of 1 MB in the state of eight slots: the controls of an epoch stay small."""
    rules = OperatorState(Redistribution.BROADCAST, (bytes(1_000_000),), "[]")
    handles = {3: SubtaskHandle({4: OperatorHandle(operator_state={"rules": rules})})}
    controls = tuple(
        SlotControl(SlotAddress("job", 0, level, slot, 7), ReadBudget(1, 1.0), handles)
        for level in range(2)
        for slot in range(4)
    )

    class Planned(_Epochs):
        def plan_of(self, epoch: int) -> EpochPlan:
            if epoch != 7:
                raise JobExecutionError("not planned")
            return EpochPlan(7, controls)

    for host in (None, "127.0.0.1"):
        server = EpochServer("0123456789abcdef", Planned(), host)
        try:
            with Client(server.address, authkey=server.token.encode()) as client:
                client.send(("partitions", 7))
                payloads = client.recv()
            assert sum(map(len, payloads)) < 20_000
            sent = [
                control
                for payload in payloads
                for control in (decode(payload)[0], *decode(payload)[1])
            ]
            assert len(sent) == len(controls)
            for control in sent:
                assert control.handles == {}
                assert fetch_handles(control) == handles
            late = replace(sent[0], address=replace(sent[0].address, epoch=6))
            with pytest.raises(JobExecutionError, match="could not fetch the handles"):
                fetch_handles(late)
        finally:
            server.close()
