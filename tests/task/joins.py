"""Helpers for the tests of joins: all subtasks of an operator with two inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from firesteel.state.key_groups import key_group_of, subtask_of
from firesteel.testing import OperatorHarness
from tests.task.windows import dropped

MIN_WATERMARK = -(2**63)
_MAX_PARALLELISM = 8

Timed = tuple[Any, int]
"""(record, timestamp); the first field of a record is its key."""


class JoinSubtasks:
    """Records go to the subtask that their key belongs to."""

    def __init__(self, program: Callable[[Any, Any], Any], parallelism: int = 1) -> None:
        self._program = program
        self._harnesses = [
            OperatorHarness.of(program, parallelism, index, _MAX_PARALLELISM).open()
            for index in range(parallelism)
        ]
        self._watermark = MIN_WATERMARK
        self._side_outputs: dict[str, list[Any]] = {}

    def add(self, side: int, batch: Iterable[Timed]) -> None:
        records = list(batch)
        parallelism = len(self._harnesses)
        for index, harness in enumerate(self._harnesses):
            mine = [
                record
                for record in records
                if subtask_of(key_group_of(record[0][0], _MAX_PARALLELISM), parallelism, 8) == index
            ]
            process = harness.process_elements1 if side == 0 else harness.process_elements2
            process([record for record, _ in mine], [timestamp for _, timestamp in mine])

    def advance(self, watermark: int) -> None:
        self._watermark = watermark
        for harness in self._harnesses:
            harness.process_watermark(watermark)

    def end_epoch(self) -> None:
        for harness in self._harnesses:
            harness.end_epoch()

    def restart(self, parallelism: int, *, forgets_time: bool = False) -> None:
        """Restart as after a failure. ``forgets_time`` drops the watermark, as a savepoint does."""
        snapshots = [harness.snapshot() for harness in self._harnesses]
        for harness in self._harnesses:
            for tag, values in harness._recorder.sides.items():
                self._side_outputs.setdefault(tag, []).extend(values)
        self._harnesses = [
            OperatorHarness.restored(self._program, snapshots, parallelism, index)
            for index in range(parallelism)
        ]
        if forgets_time:
            self._watermark = MIN_WATERMARK
        elif self._watermark > MIN_WATERMARK:
            # A job remembers the watermarks of its channels.
            self.advance(self._watermark)

    def take(self) -> list[tuple[Any, int | None]]:
        output = [pair for h in self._harnesses for pair in h.output_with_timestamps]
        for harness in self._harnesses:
            harness.extract_output()
        return output

    def side_output(self, tag: str) -> list[Any]:
        now = [value for harness in self._harnesses for value in harness.side_output(tag)]
        return self._side_outputs.get(tag, []) + now

    def dropped(self) -> int:
        return sum(map(dropped, self._harnesses))

    def state(self) -> dict[str, dict[Any, Any]]:
        """The tables that are not empty."""
        merged: dict[str, dict[Any, Any]] = {}
        for harness in self._harnesses:
            for name, table in harness.keyed_state().items():
                if table:
                    merged.setdefault(name, {}).update(table)
        return merged

    def timers(self) -> int:
        return sum(harness.num_event_time_timers() for harness in self._harnesses)
