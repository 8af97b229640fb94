"""The daemon of Spark's workers."""

from __future__ import annotations

import gc
import importlib
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from firesteel.spark import worker_daemon


def test_workers_do_not_read_archives_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("in_archive/__init__.py", "")
        file.writestr("in_archive/early.py", "")
        file.writestr("in_archive/late.py", "value = 1")
    monkeypatch.syspath_prepend(str(archive))
    monkeypatch.setattr(worker_daemon, "_PRELOADED", ("in_archive.early",))
    # The objects of the tests stay collectable.
    monkeypatch.setattr(gc, "freeze", lambda: None)
    worker_daemon.preload()
    finders = sys.path_importer_cache.values()
    assert not any(isinstance(finder, zipimport.zipimporter) for finder in finders)
    assert importlib.import_module("in_archive.late").value == 1
