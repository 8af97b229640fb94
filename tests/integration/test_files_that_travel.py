"""Archives and cached files reach the functions, in slot hosts and in Spark's workers."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from firesteel.datastream import MapFunction, RuntimeExecutionMode
from tests.integration.conftest import MakeEnvironment


class ReadsFiles(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.factor = int(Path("numbers/factor.txt").read_text())
        cached = runtime_context.get_distributed_cache().get_file("offset")
        self.offset = int(Path(cached).read_text())

    def map(self, value: int) -> int:
        return value * self.factor + self.offset


@pytest.mark.parametrize("mode", ["hosts", "in-worker", "batch"])
def test_functions_find_archives_by_relative_path_and_cached_files_by_name(
    make_env: MakeEnvironment, tmp_path: Path, mode: str
) -> None:
    with zipfile.ZipFile(tmp_path / "numbers.zip", "w") as archive:
        archive.writestr("factor.txt", "10")
    (tmp_path / "offset.txt").write_text("3")
    settings = {"firesteel_slot__host": "in-worker"} if mode == "in-worker" else {}
    env = make_env(parallelism=1, **settings)
    if mode == "batch":
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.add_python_archive(str(tmp_path / "numbers.zip"), "numbers")
    env.register_cached_file(str(tmp_path / "offset.txt"), "offset")
    here = os.getcwd()
    with env.from_collection([1, 2]).map(ReadsFiles()).execute_and_collect() as results:
        assert sorted(results) == [13, 23]
    assert os.getcwd() == here

    # The next job has no archives, and finds the working directory as it was.
    plain = make_env(parallelism=1, **settings)
    if mode == "batch":
        plain.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with plain.from_collection([1]).map(lambda _: os.getcwd()).execute_and_collect() as results:
        assert list(results) == [here]
