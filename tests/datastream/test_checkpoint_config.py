"""Checkpoint settings: methods, keys and the environment set the same values."""

from __future__ import annotations

from typing import Any

import pytest

from firesteel.common import Configuration, Duration, RestartStrategies
from firesteel.datastream import (
    CheckpointConfig,
    CheckpointingMode,
    ExternalizedCheckpointRetention,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
    StreamExecutionEnvironment,
)
from firesteel.errors import ConfigurationError


def test_defaults_are_flinks() -> None:
    config = CheckpointConfig()
    assert not config.is_checkpointing_enabled()
    assert config.get_checkpoint_interval() == -1
    assert config.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
    assert config.get_checkpoint_timeout() == 600_000
    assert config.get_min_pause_between_checkpoints() == 0
    assert config.get_max_concurrent_checkpoints() == 1
    assert config.get_tolerable_checkpoint_failure_number() == 0
    assert config.is_fail_on_checkpointing_errors()
    assert not config.is_externalized_checkpoints_enabled()
    assert not config.is_unaligned_checkpoints_enabled()
    assert config.get_aligned_checkpoint_timeout() == Duration.of_millis(0)
    assert isinstance(config.get_checkpoint_storage(), JobManagerCheckpointStorage)


@pytest.mark.parametrize(
    ("name", "value", "key", "text"),
    [
        ("checkpoint_interval", 1000, "interval", "1 s"),
        ("checkpointing_mode", CheckpointingMode.AT_LEAST_ONCE, "mode", "AT_LEAST_ONCE"),
        ("checkpoint_timeout", 30_000, "timeout", "30 s"),
        ("min_pause_between_checkpoints", 500, "min-pause", "500 ms"),
        ("max_concurrent_checkpoints", 3, "max-concurrent-checkpoints", "3"),
        ("tolerable_checkpoint_failure_number", 4, "tolerable-failed-checkpoints", "4"),
        (
            "externalized_checkpoint_retention",
            ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION,
            "externalized-checkpoint-retention",
            "RETAIN_ON_CANCELLATION",
        ),
        ("aligned_checkpoint_timeout", Duration.of_seconds(2), "aligned-checkpoint-timeout", "2 s"),
        ("alignment_timeout", Duration.of_seconds(2), "aligned-checkpoint-timeout", "2 s"),
    ],
)
def test_setters_getters_and_keys_agree(name: str, value: Any, key: str, text: str) -> None:
    configuration = Configuration()
    config = CheckpointConfig(configuration)
    assert getattr(config, f"set_{name}")(value) is config
    assert getattr(config, f"get_{name}")() == value
    assert configuration.to_dict() == {f"execution.checkpointing.{key}": text}
    other = CheckpointConfig(Configuration.from_dict(configuration.to_dict()))
    assert getattr(other, f"get_{name}")() == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("checkpoint_interval", 9),
        ("checkpoint_timeout", 9),
        ("min_pause_between_checkpoints", -1),
        ("max_concurrent_checkpoints", 0),
        ("tolerable_checkpoint_failure_number", -1),
    ],
)
def test_impossible_values_are_refused_where_they_are_set(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"got {value}"):
        getattr(CheckpointConfig(), f"set_{name}")(value)


@pytest.mark.parametrize(
    "name", ["checkpointing_mode", "externalized_checkpoint_retention", "checkpoint_storage"]
)
def test_values_of_a_wrong_type_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"set_{name} expects"):
        getattr(CheckpointConfig(), f"set_{name}")("EXACTLY_ONCE")


def test_failing_on_errors_is_the_same_as_tolerating_none() -> None:
    config = CheckpointConfig().set_fail_on_checkpointing_errors(False)
    assert not config.is_fail_on_checkpointing_errors()
    assert config.get_tolerable_checkpoint_failure_number() == 2**31 - 1


def test_unaligned_checkpoints_go_with_exactly_once_only() -> None:
    config = CheckpointConfig().enable_unaligned_checkpoints()
    assert config.is_unaligned_checkpoints_enabled()
    config.set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
    assert not config.is_unaligned_checkpoints_enabled()
    assert not config.disable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()
    assert config.set_force_unaligned_checkpoints().is_force_unaligned_checkpoints()


def test_the_environment_shows_the_same_settings() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.get_checkpoint_interval() == -1
    assert env.enable_checkpointing(5000, CheckpointingMode.AT_LEAST_ONCE) is env
    assert env.get_checkpoint_interval() == 5000
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert env.get_checkpointing_consistency_mode() is CheckpointingMode.AT_LEAST_ONCE
    env.get_checkpoint_config().set_checkpoint_interval(7000)
    assert env.get_checkpoint_interval() == 7000
    assert not env.is_unaligned_checkpoints_enabled()
    assert not env.is_force_unaligned_checkpoints()
    assert env.get_default_savepoint_directory() is None
    env.set_default_savepoint_directory("/savepoints")
    assert env.get_default_savepoint_directory() == "/savepoints"
    assert env.is_changelog_state_backend_enabled() is None
    assert env.enable_changelog_state_backend(True).is_changelog_state_backend_enabled()
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 1000))
    settings = env.get_config().to_configuration().to_dict()
    assert settings["restart-strategy.fixed-delay.attempts"] == "3"
    with pytest.raises(ValueError, match="at least 10 ms"):
        env.enable_checkpointing(0)


class TestStorage:
    def test_files(self) -> None:
        storage = FileSystemCheckpointStorage("s3://bucket/checkpoints", 1000)
        config = CheckpointConfig().set_checkpoint_storage(storage)
        found = config.get_checkpoint_storage()
        assert isinstance(found, FileSystemCheckpointStorage)
        assert found.get_checkpoint_path() == "s3://bucket/checkpoints"
        assert storage.get_min_file_size_threshold() == 1000
        assert storage.get_write_buffer_size() == 4096
        assert storage.get_savepoint_path() is None

    def test_the_drivers_memory(self) -> None:
        config = CheckpointConfig().set_checkpoint_storage_dir("/checkpoints")
        config.set_checkpoint_storage(JobManagerCheckpointStorage(max_state_size=1000))
        found = config.get_checkpoint_storage()
        assert isinstance(found, JobManagerCheckpointStorage)
        assert (found.get_max_state_size(), found.get_checkpoint_path()) == (1000, None)

    def test_what_the_program_says_counts_more_than_an_older_key(self) -> None:
        settings = {"state.checkpoints.dir": "/old", "state.checkpoint-storage": "filesystem"}
        config = CheckpointConfig(Configuration.from_dict(settings))
        config.set_checkpoint_storage(JobManagerCheckpointStorage())
        assert config.get_checkpoint_storage().get_checkpoint_path() is None

    def test_a_directory_alone_means_files(self) -> None:
        settings = {"state.checkpoints.dir": "/checkpoints"}
        config = CheckpointConfig(Configuration.from_dict(settings))
        assert str(config.get_checkpoint_storage()).startswith("FileSystemCheckpointStorage")

    def test_files_need_a_directory(self) -> None:
        settings = {"execution.checkpointing.storage": "filesystem"}
        with pytest.raises(ConfigurationError, match=r"execution\.checkpointing\.dir is not set"):
            CheckpointConfig(Configuration.from_dict(settings)).get_checkpoint_storage()

    @pytest.mark.parametrize(
        "arguments", [(None,), ("/x", 2 * 1024 * 1024), ("/x", -2), ("/x", 0, -2)]
    )
    def test_impossible_files(self, arguments: tuple[Any, ...]) -> None:
        with pytest.raises(ValueError, match=r"checkpoint_path|threshold|write_buffer_size"):
            FileSystemCheckpointStorage(*arguments)

    def test_impossible_memory(self) -> None:
        with pytest.raises(ValueError, match="max_state_size"):
            JobManagerCheckpointStorage(max_state_size=0)


def test_times_are_numbers_of_milliseconds():
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(TypeError, match="number of milliseconds, for example 1000, but got '1 s'"):
        env.enable_checkpointing("1 s")  # type: ignore[arg-type]  # refused
