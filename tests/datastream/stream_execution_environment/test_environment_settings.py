import pytest

from firesteel.common import Configuration
from firesteel.config import options
from firesteel.datastream import (
    RuntimeExecutionMode,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from firesteel.datastream.stream_execution_environment import program_process
from firesteel.errors import ConfigurationError, InvalidProgramError
from firesteel.graph.settings import CachedFile, PythonArchive, PythonRequirements


def _settings(env):
    env.from_sequence(1, 2).print()
    return env._compile().settings


def test_config_file_is_read_and_code_wins(monkeypatch, tmp_path):
    (tmp_path / "config.yaml").write_text(
        "parallelism.default: 7\npipeline:\n  name: from file\n  max-parallelism: 64\n"
    )
    monkeypatch.setenv("FIRESTEEL_CONF_DIR", str(tmp_path))
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration().set_string("parallelism.default", "3")
    )
    assert env.get_parallelism() == 3
    assert env.get_max_parallelism() == 64
    assert _settings(env).job_name == "from file"


def test_misspelled_keys_are_errors(env):
    with pytest.raises(ConfigurationError, match=r"parallelism\.default"):
        env.configure(Configuration().set_string("paralelism.default", "3"))


def test_configure_after_setters_and_setters_after_configure(env):
    env.set_parallelism(3)
    env.configure(Configuration().set_integer("parallelism.default", 4))
    assert env.get_parallelism() == 4
    env.get_config().set_parallelism(5)
    assert env.get_parallelism() == 5


def test_the_users_configuration_is_not_changed(launcher):
    configuration = Configuration()
    StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(3)
    assert configuration.key_set() == set()


def test_parallelism_is_the_number_of_cores_by_default(monkeypatch):
    monkeypatch.setattr(program_process, "available_cores", lambda: 6)
    assert StreamExecutionEnvironment().get_parallelism() == 6


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        (None, 6),
        ("local", 1),
        ("local[3]", 3),
        ("local[*]", 6),
        ("local[*, 4]", 6),
        ("local[2,4]", 2),
        ("spark://host:7077", 1),
        ("local-cluster[2,1,1024]", 1),
    ],
)
def test_parallelism_by_master(master, expected):
    assert program_process.default_parallelism(master, cores=6) == expected


def test_cores_are_counted():
    assert program_process.available_cores() >= 1


def test_default_local_parallelism_is_for_all_environments(monkeypatch):
    monkeypatch.setattr(StreamExecutionEnvironment, "_default_local_parallelism", None)
    StreamExecutionEnvironment().set_default_local_parallelism(9)
    assert StreamExecutionEnvironment().get_parallelism() == 9
    assert StreamExecutionEnvironment().get_default_local_parallelism() == 9


def test_max_parallelism(env):
    assert env.get_max_parallelism() == -1
    assert env.set_max_parallelism(16) is env
    env.from_sequence(1, 2).map(abs)
    nodes = env._compile().stream_graph.nodes.values()
    assert {node.max_parallelism for node in nodes} == {16}
    with pytest.raises(InvalidProgramError, match="32768"):
        env.set_max_parallelism(0)
    with pytest.raises(InvalidProgramError, match="at least 1"):
        env.set_parallelism(0)


def test_buffer_timeout(env):
    assert env.get_buffer_timeout() == 100
    assert env.set_buffer_timeout(0).get_buffer_timeout() == 0
    assert env.set_buffer_timeout(-1).get_buffer_timeout() == -1
    assert _settings(env).buffer_timeout == -1
    assert env.set_buffer_timeout(250).get_buffer_timeout() == 250
    with pytest.raises(InvalidProgramError, match="at least -1"):
        env.set_buffer_timeout(-2)


def test_chaining(env):
    assert env.is_chaining_enabled()
    assert env.is_chaining_of_operators_with_different_max_parallelism_enabled()
    env.from_sequence(1, 2).map(abs).print()
    assert len(env._compile().job_graph.vertices) == 1
    assert env.disable_operator_chaining() is env
    assert not env.is_chaining_enabled()
    assert len(env._compile().job_graph.vertices) == 3


def test_chaining_with_different_max_parallelism(env):
    env.configure(
        Configuration().set_boolean(
            "pipeline.operator-chaining.chain-operators-with-different-max-parallelism", False
        )
    )
    env.from_sequence(1, 2).set_max_parallelism(8).map(abs)
    assert len(env._compile().job_graph.vertices) == 2


def test_uids_can_be_required(env):
    env.get_config().disable_auto_generated_uids()
    env.from_sequence(1, 2).uid("source").map(abs)
    with pytest.raises(InvalidProgramError, match="'Map' has no uid"):
        env._compile()


def test_slot_sharing_groups_need_no_registration(env):
    assert env.register_slot_sharing_group(SlotSharingGroup("g")) is env
    with pytest.raises(TypeError, match="SlotSharingGroup"):
        env.register_slot_sharing_group("g")


def test_python_dependencies(env):
    env.add_python_file("/a.py")
    env.add_python_file("/b.zip")
    env.set_python_requirements("/requirements.txt", "/cache")
    env.set_python_executable("/usr/bin/python3")
    settings = _settings(env)
    assert settings.python_files == ("/b.zip", "/a.py")
    assert settings.requirements == PythonRequirements("/requirements.txt", "/cache")
    assert settings.configuration.get(options.PYTHON_EXECUTABLE) == "/usr/bin/python3"


def test_no_dependencies(env):
    settings = _settings(env)
    assert settings.python_files == ()
    assert settings.requirements is None


def test_requirements_without_cache(env):
    env.set_python_requirements("/requirements.txt")
    assert _settings(env).requirements == PythonRequirements("/requirements.txt")


def test_archives_become_directories_of_their_own_name_or_of_the_given_one(env):
    env.add_python_archive("/data/models.zip")
    env.add_python_archive("/venv.zip", "env/python")
    assert _settings(env).python_archives == (
        PythonArchive("/data/models.zip", "models.zip"),
        PythonArchive("/venv.zip", "env/python"),
    )


@pytest.mark.parametrize("target", ["/etc", "../up", "a,b", "a#b"])
def test_an_archive_stays_in_the_working_directory(env, target):
    with pytest.raises(InvalidProgramError, match="add_python_archive"):
        env.add_python_archive("/data.zip", target)


def test_the_interpreter_of_the_tasks_cannot_come_in_an_archive(env):
    env.add_python_archive("/venv.zip", "venv")
    env.set_python_executable("venv/bin/python")
    with pytest.raises(ConfigurationError, match="must be installed"):
        _settings(env)


def test_cached_files_are_kept_in_the_notation_of_flink(env):
    env.register_cached_file("file:///models/m.bin", "model")
    env.register_cached_file("/tools/run", "tool", executable=True)
    assert env._configuration.get_string("pipeline.cached-files", "") == (
        "name:model,path:file:///models/m.bin,executable:false;"
        "name:tool,path:/tools/run,executable:true"
    )
    assert _settings(env).cached_files == (
        CachedFile("file:///models/m.bin", "model"),
        CachedFile("/tools/run", "tool", executable=True),
    )


def test_a_name_is_registered_once_and_in_flinks_notation(env):
    env.register_cached_file("/a", "a")
    with pytest.raises(InvalidProgramError, match="already registered"):
        env.register_cached_file("/b", "a")
    with pytest.raises(InvalidProgramError, match="without"):
        env.register_cached_file("/a,b", "b")
    env._configuration.set_string("pipeline.cached-files", "path:/only")
    with pytest.raises(ConfigurationError, match="has no name or no path"):
        _settings(env)


def test_settings_of_a_job_do_not_change_after_it_began(env):
    settings = _settings(env)
    env.set_parallelism(9)
    assert settings.configuration.get_integer("parallelism.default", 0) == 2


# -- runtime mode --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (None, RuntimeExecutionMode.STREAMING),
        (RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.STREAMING),
        (RuntimeExecutionMode.BATCH, RuntimeExecutionMode.BATCH),
        (RuntimeExecutionMode.AUTOMATIC, RuntimeExecutionMode.BATCH),
    ],
)
def test_runtime_mode_of_a_bounded_program(env, mode, expected):
    if mode is not None:
        assert env.set_runtime_mode(mode) is env
    settings = _settings(env)
    assert settings.runtime_mode is expected
    assert settings.bounded


def test_runtime_mode_of_an_unbounded_program(env):
    env.from_sequence(1, 2).union(
        env.socket_text_stream("localhost", 9999).map(int, env.from_sequence(1, 1).get_type())
    ).print()
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    settings = env._compile().settings
    assert settings.runtime_mode is RuntimeExecutionMode.STREAMING
    assert not settings.bounded
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with pytest.raises(InvalidProgramError, match=r"UNBOUNDED source.*Socket Stream"):
        env._compile()


def test_runtime_mode_must_be_one(env):
    with pytest.raises(TypeError, match="RuntimeExecutionMode"):
        env.set_runtime_mode("BATCH")
