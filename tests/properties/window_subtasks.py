"""All subtasks of one operator, with the events of their life: records, time and restarts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from firesteel.state.key_groups import key_group_of, subtask_of
from firesteel.testing import OperatorHarness
from tests.properties.window_model import MIN_WATERMARK
from tests.task.windows import LATE, dropped

_MAX_PARALLELISM = 8


class Subtasks:
    """All subtasks of the operator; records go where their key belongs."""

    def __init__(self, program: Callable[[Any], Any], parallelism: int) -> None:
        self._program = program
        self._harnesses = [
            OperatorHarness.of(program, parallelism, index, _MAX_PARALLELISM).open()
            for index in range(parallelism)
        ]
        self._watermark = MIN_WATERMARK

    def add(self, batch: list[tuple[str, int, int]]) -> None:
        parallelism = len(self._harnesses)
        for index, harness in enumerate(self._harnesses):
            mine = [
                record
                for record in batch
                if subtask_of(key_group_of(record[0], _MAX_PARALLELISM), parallelism, 8) == index
            ]
            harness.process_elements([r[:2] for r in mine], [r[2] for r in mine])

    def advance(self, watermark: int) -> None:
        self._watermark = watermark
        for harness in self._harnesses:
            harness.process_watermark(watermark)

    def end_epoch(self) -> None:
        for harness in self._harnesses:
            harness.snapshot()

    def restart(self, parallelism: int, *, forgets_time: bool = False) -> None:
        """Restart as after a failure. ``forgets_time`` drops the watermark, as a savepoint does."""
        snapshots = [harness.snapshot() for harness in self._harnesses]
        late = self.late()
        self._harnesses = [
            OperatorHarness.restored(self._program, snapshots, parallelism, index)
            for index in range(parallelism)
        ]
        self._harnesses[0]._recorder.sides[LATE.tag_id] = late
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

    def late(self) -> list[Any]:
        return [record for h in self._harnesses for record in h.side_output(LATE)]

    def dropped(self) -> int:
        return sum(map(dropped, self._harnesses))

    def state_entries(self) -> int:
        return sum(len(t) for h in self._harnesses for t in h.keyed_state().values())


_records = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.integers(-20, 60)),
    min_size=1,
    max_size=8,
)
events_of_windows = st.lists(
    st.one_of(
        _records.map(lambda records: ("records", records)),
        st.integers(0, 15).map(lambda by: ("advance", by)),
        st.integers(1, 3).map(lambda parallelism: ("restart", parallelism)),
        st.integers(1, 3).map(lambda parallelism: ("savepoint", parallelism)),
        st.just(("end of epoch", 0)),
    ),
    max_size=12,
)
