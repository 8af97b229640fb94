"""Used, known, unknown and misspelled keys."""

import logging

import pytest

from firesteel.config import ALL_OPTIONS, check, check_keys
from firesteel.config.check import FLINK_KEYS, KeyStatus, classify_key
from firesteel.errors import ConfigurationError


@pytest.fixture(autouse=True)
def _forget_notes(monkeypatch):
    monkeypatch.setattr(check, "_noted", set())


@pytest.mark.parametrize(
    ("key", "status"),
    [
        ("parallelism.default", KeyStatus.USED),
        ("firesteel.slot-host", KeyStatus.USED),
        ("execution.buffer-timeout", KeyStatus.USED),
        ("spark.executor.memory", KeyStatus.SPARK),
        ("execution.checkpointing.interval", KeyStatus.USED),
        ("execution.checkpointing.unaligned.enabled", KeyStatus.USED),
        ("taskmanager.memory.process.size", KeyStatus.FLINK),
        ("metrics.reporter.prom.factory.class", KeyStatus.FLINK),
        ("my.own.thing", KeyStatus.UNKNOWN),
    ],
)
def test_what_a_key_is(key, status):
    assert classify_key(key).status is status


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("parallelism.defualt", "parallelism.default"),
        ("paralelism.default", "parallelism.default"),
        ("execution.runtimemode", "execution.runtime-mode"),
        ("firesteel.slothost", "firesteel.slot-host"),
        ("firesteel.epoch.max-record", "firesteel.epoch.max-records"),
        ("execution.checkpointing.intervall", "execution.checkpointing.interval"),
    ],
)
def test_a_misspelled_key_is_an_error_with_a_suggestion(key, meant):
    with pytest.raises(ConfigurationError) as caught:
        check_keys([key])
    assert caught.value.key == key
    assert caught.value.suggestion == meant
    assert f"Did you mean '{meant}'?" in str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        "state.backend.rocksdb.memory.fixed-per-tm",
        "execution.checkpointing.unaligned",
        "taskmanager.network.memory.max-buffers-per-channel",
        # Close to another key without effect: nothing is lost by taking it for one of Flink's.
        "taskmanager.memory.framework.off-heap.sizes",
    ],
)
def test_a_key_of_flink_that_looks_like_another_is_accepted(key):
    assert classify_key(key).status is KeyStatus.FLINK


def test_an_unknown_key_of_firesteels_own_is_an_error():
    with pytest.raises(ConfigurationError, match="Unknown setting"):
        check_keys(["firesteel.zzzzzzzz.qqqqqqq"])


def test_a_key_without_effect_is_noted_once(caplog):
    with caplog.at_level(logging.WARNING, logger="firesteel"):
        check_keys(
            ["metrics.latency.interval", "my.own.thing", "spark.app.name", "parallelism.default"]
        )
        check_keys(["metrics.latency.interval", "my.own.thing"])
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert any("'metrics.latency.interval' is accepted" in message for message in messages)
    assert any("'my.own.thing' is unknown" in message for message in messages)


def test_every_known_key_is_accepted():
    check_keys(option.key for option in ALL_OPTIONS)
    check_keys(FLINK_KEYS)
    for option in ALL_OPTIONS:
        check_keys(option.deprecated_keys)


def test_every_setting_is_declared_once():
    keys = [key for option in ALL_OPTIONS for key in (option.key, *option.deprecated_keys)]
    assert len(keys) == len(set(keys))
    assert not set(keys) & FLINK_KEYS


def test_every_default_fits_its_own_type():
    for option in ALL_OPTIONS:
        assert option.description, option.key
        if option.default is not None:
            assert option.parse(option.default) == option.default, option.key
            assert option.parse(option.default_text()) == option.default, option.key
