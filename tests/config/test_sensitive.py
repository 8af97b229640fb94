from __future__ import annotations

from firesteel.config.sensitive import hide_secrets


def test_secrets_are_hidden_and_other_settings_stay() -> None:
    settings = {
        "s3.secret-key": "a",
        "s3.access-key": "b",
        "security.ssl.rest.key-Password": "c",
        "firesteel.rest.token": "d",
        "s3.endpoint": "http://localhost:9000",
    }
    assert hide_secrets(settings) == {
        **dict.fromkeys(settings, "******"),
        "s3.endpoint": "http://localhost:9000",
    }
