"""The time that a slot spends waiting, for input or for later slots to take its output."""

from __future__ import annotations

import time

_WORKING, _IDLE, _BACK_PRESSURED = range(3)


class SlotActivity:
    """Adds up waiting times. The slot's thread writes them, any thread may read them.

    All values are in one tuple that is replaced as a whole, so that readers need no lock.
    """

    __slots__ = ("_born", "_state")

    def __init__(self) -> None:
        self._born = time.perf_counter()
        # Idle seconds, back-pressured seconds, present activity, and when it began.
        self._state = (0.0, 0.0, _WORKING, self._born)

    def wait_for_input(self) -> None:
        idle, back_pressured, _, _ = self._state
        self._state = (idle, back_pressured, _IDLE, time.perf_counter())

    def wait_for_output(self) -> None:
        idle, back_pressured, _, _ = self._state
        self._state = (idle, back_pressured, _BACK_PRESSURED, time.perf_counter())

    def work(self) -> None:
        """Record the end of a wait."""
        now = time.perf_counter()
        self._state = (*self._waited(now), _WORKING, now)

    def _waited(self, now: float) -> tuple[float, float]:
        idle, back_pressured, kind, since = self._state
        if kind == _IDLE:
            return idle + (now - since), back_pressured
        if kind == _BACK_PRESSURED:
            return idle, back_pressured + (now - since)
        return idle, back_pressured

    def seconds(self) -> tuple[float, float, float]:
        """Return the age of the slot, and its idle and back-pressured seconds up to now."""
        now = time.perf_counter()
        return (now - self._born, *self._waited(now))

    @property
    def is_back_pressured(self) -> bool:
        return self._state[2] == _BACK_PRESSURED
