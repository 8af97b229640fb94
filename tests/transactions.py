"""A transactional store that refuses invalid requests, and a sink for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from firesteel.datastream import TwoPhaseCommitSinkFunction


class DirectoryStore:
    """Transactions are files: ``open``, renamed to ``prepared``, renamed to ``committed``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def begin(self) -> str:
        name = f"{len(list(self.directory.glob('begun-*')))}"
        (self.directory / f"begun-{name}").touch()
        self._file(name, "open").touch()
        return name

    def write(self, name: str, value: Any) -> None:
        with self._file(name, "open").open("a") as file:
            file.write(json.dumps(value) + "\n")

    def prepare(self, name: str) -> None:
        self._file(name, "open").rename(self._file(name, "prepared"))

    def commit(self, name: str) -> None:
        if self._file(name, "committed").exists():
            return
        # Fails if it was aborted: that would be a loss.
        self._file(name, "prepared").rename(self._file(name, "committed"))

    def abort(self, name: str) -> None:
        assert not self._file(name, "committed").exists(), "aborted after it was committed"
        for phase in ("open", "prepared"):
            self._file(name, phase).unlink(missing_ok=True)

    def is_committed(self, name: str) -> bool:
        return self._file(name, "committed").exists()

    def _file(self, name: str, phase: str) -> Path:
        return self.directory / f"{name}.{phase}"

    def in_phase(self, phase: str) -> list[list[Any]]:
        """The records of each transaction in this phase, oldest first."""
        files = sorted(self.directory.glob(f"*.{phase}"), key=lambda file: int(file.stem))
        return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]

    @property
    def committed(self) -> list[Any]:
        return [value for records in self.in_phase("committed") for value in records]


class StoreSink(TwoPhaseCommitSinkFunction[Any, str, Any]):
    def __init__(self, directory: Path) -> None:
        self.store = DirectoryStore(directory)

    def begin_transaction(self) -> str:
        return self.store.begin()

    def invoke(  # type: ignore[override]  # Flink's overload of the name
        self, transaction: str, value: Any, context: Any
    ) -> None:
        self.store.write(transaction, value)

    def pre_commit(self, transaction: str) -> None:
        self.store.prepare(transaction)

    def commit(self, transaction: str) -> None:
        self.store.commit(transaction)

    def abort(self, transaction: str) -> None:
        self.store.abort(transaction)
