"""The driver's end of the clock: a server for the next epoch and its plan."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Protocol

from firesteel.errors import JobExecutionError
from firesteel.filesystems.scratch import ScratchDirectory
from firesteel.protocol.driver_address import DriverAddress
from firesteel.protocol.execution import EpochPlan
from firesteel.protocol.messages import SlotAddress, SubtaskHandle, encode
from firesteel.slothost.connection import parent_of_sockets
from firesteel.slothost.request_server import RequestServer


class EpochProvider(Protocol):
    def next_epoch(self, after: int) -> int:
        """Wait until an epoch is due; return ``after`` itself if none follows."""

    def plan_of(self, epoch: int) -> EpochPlan:
        """Return the plan of an epoch that is due."""


class EpochServer:
    """Listens on a socket in a private directory, and asks clients for a token.

    Slots that do not have their state fetch its handles here. ``host`` is the address at which
    slots on other machines reach the driver, or None if all slots are on this machine.
    """

    def __init__(self, job_id: str, provider: EpochProvider, host: str | None = None) -> None:
        self._directory = ScratchDirectory(f"clock-{job_id[:6]}", parent_of_sockets())
        self.address = str(self._directory.path / "clock.sock")
        self.token = secrets.token_hex(16)
        self._provider = provider
        self._servers = [RequestServer("epoch server", self.address, self.token, self._answer)]
        if host is not None:
            self._servers.append(RequestServer("epoch server", (host, 0), self.token, self._answer))

    @property
    def driver(self) -> DriverAddress:
        """The address for slots."""
        return DriverAddress(self._servers[-1].address, self.token)

    def _answer(
        self, request: tuple[str, int] | SlotAddress
    ) -> int | list[bytes] | dict[int, SubtaskHandle]:
        if isinstance(request, SlotAddress):
            return _handles(self._provider.plan_of(request.epoch), request)
        question, epoch = request
        if question == "next":
            return self._provider.next_epoch(epoch)
        return partition_payloads(self._provider.plan_of(epoch), self.driver)

    def close(self) -> None:
        for server in self._servers:
            server.close()
        self._directory.remove()


def partition_payloads(plan: EpochPlan, driver: DriverAddress) -> list[bytes]:
    """Return a partition per slot of level 0. Each also carries a share of the other controls.

    Handles stay in the driver. Most slots have their state, and state of operators may be large.
    """
    plan = replace(
        plan, controls=tuple(replace(one, handles={}, driver=driver) for one in plan.controls)
    )
    first = plan.of_level(0)
    others = [control for control in plan.controls if control.address.level > 0]
    return [encode((own, others[index :: len(first)])) for index, own in enumerate(first)]


def _handles(plan: EpochPlan, address: SlotAddress) -> dict[int, SubtaskHandle]:
    wanted = (address.job_id, address.attempt, address.level, address.slot)
    for control in plan.controls:
        known = control.address
        if (known.job_id, known.attempt, known.level, known.slot) == wanted:
            return control.handles
    raise JobExecutionError(f"there is no level {address.level}, slot {address.slot} in the plan")
