"""Settings of a group of masters."""

from __future__ import annotations

import stat

import pytest

from firesteel.common.configuration import Configuration
from firesteel.errors import ConfigurationError
from firesteel.leader.settings import leader_settings, settings_from_json, settings_to_json


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FIRESTEEL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_there_is_one_master_unless_the_type_is_set():
    assert leader_settings(Configuration()) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"high-availability.type": "filesystem"}, "high-availability.storageDir"),
        (
            {"high-availability.type": "zookeeper", "high-availability.storageDir": "/ha"},
            "high-availability.zookeeper.quorum",
        ),
        (
            {
                "high-availability.type": "filesystem",
                "high-availability.storageDir": "hdfs://user:hush@host/ha",
            },
            "conditional writes",
        ),
        (
            {
                "high-availability.type": "filesystem",
                "high-availability.storageDir": "/ha",
                "high-availability.cluster-id": "../up",
            },
            "high-availability.cluster-id",
        ),
        (
            {
                "high-availability.type": "filesystem",
                "high-availability.storageDir": "/ha",
                "firesteel.high-availability.lease-renewal": "5 s",
            },
            "lease-renewal",
        ),
    ],
)
def test_missing_and_unfit_settings_are_named(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        leader_settings(Configuration.from_dict(settings))


def test_the_key_comes_from_the_token_or_from_a_private_file(home):
    base = {"high-availability.type": "filesystem", "high-availability.storageDir": "/ha"}
    first = leader_settings(Configuration.from_dict(base))
    second = leader_settings(Configuration.from_dict(base))
    assert first is not None
    assert second is not None
    assert first.key == second.key
    file = home / "masters" / "default.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with_token = leader_settings(
        Configuration.from_dict({**base, "firesteel.rest.token": "secret"})
    )
    assert with_token is not None
    assert with_token.key not in (first.key, b"secret")
    assert "secret" not in repr(with_token)


def test_settings_travel_to_the_process_of_a_job_master():
    settings = leader_settings(
        Configuration.from_dict(
            {
                "high-availability.type": "zookeeper",
                "high-availability.storageDir": "s3://bucket/ha/",
                "high-availability.cluster-id": "/orders",
                "high-availability.zookeeper.quorum": "a:1,b:2",
                "s3.secret-key": "x",
            }
        )
    )
    assert settings is not None
    assert settings.directory == "s3://bucket/ha/orders"
    assert settings_from_json(settings_to_json(settings, 7)) == (settings, 7)
