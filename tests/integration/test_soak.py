"""Three minutes of `make soak`: random faults lose and double nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.soak.__main__ import run
from tools.soak.supervisor import Plan


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.execution("real-time")
def test_three_minutes_of_faults_lose_and_double_nothing(tmp_path: Path, execution: str) -> None:
    course, findings = run(Plan(seed=7, seconds=180, execution=execution), tmp_path)
    assert findings == []
    assert course.submissions > 1
    assert course.counts.total() > 3
