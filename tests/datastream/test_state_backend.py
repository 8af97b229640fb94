import pytest

from firesteel.common import Configuration
from firesteel.datastream import (
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    StreamExecutionEnvironment,
)
from firesteel.errors import ConfigurationError, NeverSupportedError
from firesteel.state.backend_factory import StateBackendSettings, settings_of


def _settings(env):
    return settings_of(env._configuration)


def test_state_lives_in_memory_unless_told_otherwise(env):
    assert _settings(env) == StateBackendSettings("hashmap")
    env.set_state_backend(EmbeddedRocksDBStateBackend())
    assert _settings(env) == StateBackendSettings("rocksdb")
    env.set_state_backend(HashMapStateBackend())
    assert _settings(env).kind == "hashmap"


def test_what_is_set_on_rocksdb_reaches_the_slots(env):
    backend = EmbeddedRocksDBStateBackend(False)
    backend.set_db_storage_paths("/fast/one", "/fast/two")
    backend.set_predefined_options(PredefinedOptions.SPINNING_DISK_OPTIMIZED)
    backend.set_number_of_transfer_threads(2)
    env.set_state_backend(backend)
    assert _settings(env) == StateBackendSettings(
        "rocksdb",
        local_directories=("/fast/one", "/fast/two"),
        predefined_options="SPINNING_DISK_OPTIMIZED",
        incremental=False,
        transfer_threads=2,
    )
    assert backend.get_db_storage_paths() == ["/fast/one", "/fast/two"]
    assert backend.get_predefined_options() is PredefinedOptions.SPINNING_DISK_OPTIMIZED
    assert backend.get_number_of_transfer_threads() == 2
    assert not backend.is_incremental_checkpoints_enabled()


def test_the_configuration_says_it_too():
    configuration = Configuration()
    configuration.set_string("state.backend.type", "rocksdb")
    configuration.set_string("state.backend.rocksdb.localdir", "/fast")
    configuration.set_string("state.backend.rocksdb.memory.fixed-per-slot", "64 mb")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    assert _settings(env) == StateBackendSettings(
        "rocksdb", local_directories=("/fast",), memory_bytes=64 << 20
    )
    configuration.set_string("state.backend.type", "tape")
    with pytest.raises(ConfigurationError, match=r"state\.backend\.type"):
        settings_of(configuration)


def test_defaults_of_rocksdb():
    backend = EmbeddedRocksDBStateBackend()
    assert backend.get_db_storage_paths() == []
    assert backend.get_predefined_options() is PredefinedOptions.DEFAULT
    assert backend.get_number_of_transfer_threads() == 4
    assert backend.is_incremental_checkpoints_enabled()
    assert backend.get_options() is None


def test_what_rocksdb_does_not_take(env):
    backend = EmbeddedRocksDBStateBackend()
    with pytest.raises(NeverSupportedError, match="Java class"):
        backend.set_options("org.example.Factory")
    with pytest.raises(TypeError, match="PredefinedOptions"):
        backend.set_predefined_options("DEFAULT")  # type: ignore[arg-type]  # refused
    with pytest.raises(ValueError, match="at least 1"):
        backend.set_number_of_transfer_threads(0)
    with pytest.raises(ValueError, match="path of a directory"):
        backend.set_db_storage_paths("")
    with pytest.raises(TypeError, match="set_state_backend expects a StateBackend"):
        env.set_state_backend("rocksdb")
