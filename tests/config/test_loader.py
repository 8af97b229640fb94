"""Reading config.yaml."""

import re

import pytest

from firesteel.common import Configuration
from firesteel.config import options, state_options
from firesteel.config.loader import find_config_file, load_configuration, read_config_file
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.errors import ConfigurationError

FILE = """
parallelism:
  default: 4
execution.runtime-mode: batch
pipeline:
  object-reuse: true
  jars: [a.jar, b.jar]
  name:
spark.sql.shuffle.partitions: 8
"""


@pytest.fixture
def conf_dir(tmp_path):
    (tmp_path / "config.yaml").write_text(FILE)
    return tmp_path


def test_nested_and_flat_keys(conf_dir):
    configuration = read_config_file(conf_dir / "config.yaml")
    assert configuration.to_dict() == {
        "parallelism.default": "4",
        "execution.runtime-mode": "batch",
        "pipeline.object-reuse": "true",
        "pipeline.jars": "[a.jar, b.jar]",
        "spark.sql.shuffle.partitions": "8",
    }
    assert configuration.get(options.RUNTIME_MODE) == "BATCH"
    assert configuration.get(options.PIPELINE_JARS) == ["a.jar", "b.jar"]


def test_code_wins_over_the_file(conf_dir):
    code = Configuration().set_integer("parallelism.default", 2)
    configuration = load_configuration(code, path=conf_dir / "config.yaml")
    assert configuration.get(options.DEFAULT_PARALLELISM) == 2
    assert configuration.get(options.OBJECT_REUSE) is True
    assert code.key_set() == {"parallelism.default"}


def test_code_wins_also_over_an_older_key_in_the_file(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("execution.buffer-timeout: 5 s")
    code = Configuration().set_string("execution.buffer-timeout.interval", "1 s")
    configuration = load_configuration(code, path=file)
    assert configuration.get(options.BUFFER_TIMEOUT).total_seconds() == 1


def test_an_older_key_in_code_wins_over_the_file(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("execution.buffer-timeout.interval: 5 s")
    code = Configuration().set_string("execution.buffer-timeout", "1 s")
    configuration = load_configuration(code, path=file)
    assert configuration.get(options.BUFFER_TIMEOUT).total_seconds() == 1


def test_configure_wins_over_the_file_under_an_older_key(conf_dir, monkeypatch):
    (conf_dir / "config.yaml").write_text("state.backend.type: rocksdb")
    monkeypatch.setenv("FIRESTEEL_CONF_DIR", str(conf_dir))
    env = StreamExecutionEnvironment.get_execution_environment()
    env.configure(Configuration().set_string("state.backend", "hashmap"))
    assert env._configuration.get(state_options.STATE_BACKEND) == "hashmap"


def test_a_map_may_be_nested(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("pipeline:\n  global-job-parameters:\n    a.b: 'x:y'\n    c: 1\n")
    configuration = load_configuration(path=file)
    assert configuration.get(options.GLOBAL_JOB_PARAMETERS) == {"a.b": "x:y", "c": "1"}


def test_firesteels_directory_goes_before_flinks(conf_dir, tmp_path_factory):
    other = tmp_path_factory.mktemp("flink")
    (other / "config.yaml").write_text("parallelism.default: 1")
    both = {"FIRESTEEL_CONF_DIR": str(conf_dir), "FLINK_CONF_DIR": str(other)}
    assert find_config_file(both) == conf_dir / "config.yaml"
    assert find_config_file({"FLINK_CONF_DIR": str(other)}) == other / "config.yaml"
    assert find_config_file({}) is None
    assert find_config_file({"FLINK_CONF_DIR": ""}) is None


@pytest.mark.parametrize("variable", ["FIRESTEEL_CONF_DIR", "FLINK_CONF_DIR"])
def test_a_directory_that_is_named_must_have_the_file(variable, conf_dir, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    other = {"FLINK_CONF_DIR": str(conf_dir)}  # never used instead
    for directory, missing in (
        (empty, f"{empty / 'config.yaml'} does not exist"),
        (empty / "nowhere", f"{empty / 'nowhere'} is not a directory"),
    ):
        with pytest.raises(ConfigurationError, match=f"{variable} .*{re.escape(missing)}"):
            load_configuration(environ=other | {variable: str(directory)})


def test_without_a_file_only_the_code_counts():
    code = Configuration().set_integer("parallelism.default", 2)
    assert load_configuration(code, environ={}) == code


def test_a_misspelled_key_in_the_file_is_an_error(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("parallelism:\n  defualt: 4\n")
    with pytest.raises(ConfigurationError, match=r"Did you mean 'parallelism\.default'"):
        load_configuration(path=file)


@pytest.mark.parametrize("content", ["- a\n- b\n", "just text", "a: [1"])
def test_a_file_that_holds_no_settings_is_an_error(tmp_path, content):
    file = tmp_path / "config.yaml"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match=r"config\.yaml"):
        read_config_file(file)


def test_a_missing_file_is_an_error_and_an_empty_one_is_not(tmp_path):
    with pytest.raises(ConfigurationError, match="Cannot read"):
        load_configuration(path=tmp_path / "none.yaml")
    (tmp_path / "config.yaml").write_text("# nothing\n")
    assert read_config_file(tmp_path / "config.yaml") == Configuration()
