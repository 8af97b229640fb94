import pytest

from firesteel.common import Configuration
from firesteel.datastream import (
    RuntimeExecutionMode,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from firesteel.datastream.stream_execution_environment import local_parallelism
from firesteel.errors import ConfigurationError, InvalidProgramError, NotYetSupportedError
from firesteel.graph.job_settings import PythonRequirements


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
    monkeypatch.setattr(local_parallelism, "available_cores", lambda: 6)
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
    assert local_parallelism.default_parallelism(master, cores=6) == expected


def test_cores_are_counted():
    assert local_parallelism.available_cores() >= 1


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
    assert settings.python_executable == "/usr/bin/python3"


def test_no_dependencies(env):
    settings = _settings(env)
    assert settings.python_files == ()
    assert settings.requirements is None
    assert settings.python_executable is None


def test_requirements_without_cache(env):
    env.set_python_requirements("/requirements.txt")
    assert _settings(env).requirements == PythonRequirements("/requirements.txt")


def test_files_that_tasks_would_not_see_are_refused(env):
    with pytest.raises(NotYetSupportedError, match="a path that all machines see"):
        env.register_cached_file("/model.bin", "model", executable=True)
    with pytest.raises(NotYetSupportedError, match="add_python_file"):
        env.add_python_archive("/venv.zip", "data")


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
