"""A disk that runs full: a layer over the real one whose writes fail as they would there."""

from __future__ import annotations

import errno
import io
import os
from typing import Any

import pytest

_open = io.open


class FullDisk:
    """Takes ``free`` more bytes, then none. What was buffered fails when it is flushed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *modules: Any) -> None:
        self.free: float = float("inf")
        # pathlib opens files by io.open, our modules by the builtin of that name.
        monkeypatch.setattr(io, "open", self.open)
        for module in modules:
            monkeypatch.setattr(module, "open", self.open, raising=False)

    def open(self, file: Any, mode: str = "r", *arguments: Any, **more: Any) -> Any:
        if "b" in mode and set("wxa") & set(mode):
            return io.BufferedWriter(_File(file, mode, self))
        return _open(file, mode, *arguments, **more)


class _File(io.FileIO):
    def __init__(self, path: Any, mode: str, disk: FullDisk) -> None:
        super().__init__(path, mode)
        self._disk = disk

    def write(self, data: Any) -> int:
        view = memoryview(data)[: int(min(len(data), self._disk.free))]
        if data and not view:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._disk.free -= len(view)
        return super().write(view)
