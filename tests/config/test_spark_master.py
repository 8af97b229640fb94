"""Recognizing the Spark masters that run on this machine."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.config.spark_master import LocalMaster, local_master
from firesteel.spark.session import is_local, task_attempts


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", LocalMaster(1, 1)),
        ("local[4]", LocalMaster(4, 1)),
        ("local[*]", LocalMaster(None, 1)),
        ("local[ 2 , 3 ]", LocalMaster(2, 3)),
        ("local-cluster[2,1,512]", None),
        ("spark://local:7077", None),
        ("yarn", None),
    ],
)
def test_a_master_is_local_or_a_clusters(master: str, expected: LocalMaster | None) -> None:
    assert local_master(master) == expected
    context = SimpleNamespace(
        master=master, getConf=lambda: SimpleNamespace(get=lambda _key, default: default)
    )
    session: Any = SimpleNamespace(sparkContext=context)
    assert is_local(session) is (expected is not None)
    assert task_attempts(session) == (4 if expected is None else expected.attempts)
