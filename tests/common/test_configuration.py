"""Configuration, ConfigOptions and ExecutionConfig."""

import copy
import datetime as dt
import logging
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import ConfigOptions, Configuration, ExecutionConfig
from firesteel.config import options, restart_options
from firesteel.errors import ConfigurationError, NeverSupportedError


def test_values_are_read_as_the_type_asked_for():
    configuration = Configuration.from_dict({"i": "7", "b": "TRUE", "f": "1.5", "s": "x"})
    assert configuration.get_integer("i", 0) == 7
    assert configuration.get_boolean("b", False) is True
    assert configuration.get_float("f", 0) == 1.5
    assert configuration.get_string("s", "") == "x"
    assert configuration.get_string("i", "") == "7"


def test_defaults_stand_for_missing_keys():
    configuration = Configuration()
    assert configuration.get_integer("x", 3) == 3
    assert configuration.get_boolean("x", True) is True
    assert configuration.get_float("x", 1) == 1.0
    assert configuration.get_string("x", "d") == "d"
    assert configuration.get_bytearray("x", bytearray(b"d")) == bytearray(b"d")


def test_typed_setters_show_as_text():
    configuration = (
        Configuration()
        .set_integer("i", 7)
        .set_boolean("b", True)
        .set_float("f", 1)
        .set_string("s", "x")
    )
    assert configuration.to_dict() == {"i": "7", "b": "true", "f": "1.0", "s": "x"}
    assert configuration.key_set() == {"i", "b", "f", "s"}


def test_values_keep_their_type_in_a_dict():
    configuration = (
        Configuration()
        .set_integer("i", 7)
        .set_boolean("b", True)
        .set_float("f", 1)
        .set_string("s", "x")
        .set_bytearray("y", bytearray(b"ab"))
    )
    target = {"i": "0", "z": "1"}
    configuration.add_all_to_dict(target)
    assert target == {"i": 7, "b": True, "f": 1.0, "s": "x", "y": b"ab", "z": "1"}
    assert [type(value) for value in target.values()] == [int, str, bool, float, str, bytes]


def test_the_text_of_a_configuration_is_flinks_and_hides_secrets():
    configuration = Configuration().set_string("k1", "v1").set_integer("k2", 1)
    assert str(configuration) == "{k1=v1, k2=1}"
    assert str(Configuration()) == "{}"
    secrets = Configuration().set_string("s3.Access-Key", "abc").set_string("my.PASSWORD", "def")
    assert str(secrets) == "{s3.Access-Key=******, my.PASSWORD=******}"
    assert "abc" not in repr(secrets)
    assert secrets.to_dict() == {"s3.Access-Key": "abc", "my.PASSWORD": "def"}


def test_bytes_come_back():
    configuration = Configuration().set_bytearray("k", bytearray(b"\x00\x01"))
    assert configuration.get_bytearray("k", bytearray()) == bytearray(b"\x00\x01")


def test_a_value_that_does_not_parse_names_its_key():
    with pytest.raises(ConfigurationError, match="k: expected an integer, got 'x'"):
        Configuration().set_string("k", "x").get_integer("k", 0)


def test_add_all_with_prefix_and_remove():
    other = Configuration().set_string("b", "1")
    configuration = Configuration().add_all(other).add_all(other, "a.")
    assert configuration.to_dict() == {"b": "1", "a.b": "1"}
    assert configuration.remove_config("b")
    assert not configuration.remove_config("b")
    assert configuration.contains_key("a.b")


def test_copies_are_independent_and_equal():
    configuration = Configuration().set_integer("a", 1)
    for twin in (
        Configuration(configuration),
        copy.deepcopy(configuration),
        pickle.loads(pickle.dumps(configuration)),
    ):
        assert twin == configuration
        assert hash(twin) == hash(configuration)
        twin.set_integer("a", 2)
        assert configuration.get_integer("a", 0) == 1


def test_typed_and_text_values_are_the_same_configuration():
    assert Configuration().set_integer("a", 1) == Configuration().set_string("a", "1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b", ["a", "b"]),
        ("[a, b]", ["a", "b"]),
        ("[no, 1, 'x;y']", ["no", "1", "x;y"]),
        ("- a\n- b\n- c", ["a", "b", "c"]),
        ("  - a\n  - b\n", ["a", "b"]),
        ("a", ["a"]),
        ("", []),
        (None, []),
    ],
)
def test_list_values(text, expected):
    assert Configuration.parse_list_value(text) == expected


def test_declared_options():
    configuration = Configuration()
    assert configuration.get(options.BUFFER_TIMEOUT) == dt.timedelta(milliseconds=100)
    assert configuration.get_optional(options.BUFFER_TIMEOUT) is None
    configuration.set_string("execution.buffer-timeout", "5 s")  # the older key
    assert configuration.get(options.BUFFER_TIMEOUT) == dt.timedelta(seconds=5)
    configuration.set(options.BUFFER_TIMEOUT, dt.timedelta(seconds=1))
    assert configuration.get(options.BUFFER_TIMEOUT) == dt.timedelta(seconds=1)
    assert configuration.to_dict()["execution.buffer-timeout.interval"] == "1 s"
    with pytest.raises(ConfigurationError, match="expected one of resident, in-worker"):
        configuration.set(options.SLOT_HOST, "elsewhere")


def test_options_of_the_users_own():
    option = ConfigOptions.key("app.workers").int_type().default_value(3)
    assert Configuration().get(option) == 3
    assert Configuration().set_string("app.workers", "4").get(option) == 4
    bare = ConfigOptions.key("app.name").string_type().no_default_value()
    assert Configuration().get(bare) is None


def test_execution_config_is_a_view_of_the_configuration():
    configuration = Configuration()
    config = ExecutionConfig(configuration)
    assert config.get_parallelism() == ExecutionConfig.PARALLELISM_DEFAULT
    assert config.get_auto_watermark_interval() == 200
    assert config.get_max_parallelism() == -1
    assert not config.is_object_reuse_enabled()
    config.set_parallelism(4).set_max_parallelism(128).set_auto_watermark_interval(50)
    config.enable_object_reuse().disable_auto_generated_uids()
    assert configuration.to_dict() == {
        "parallelism.default": "4",
        "pipeline.max-parallelism": "128",
        "pipeline.auto-watermark-interval": "50 ms",
        "pipeline.object-reuse": "true",
        "pipeline.auto-generate-uids": "false",
    }
    configuration.set_string("parallelism.default", "8")
    assert config.get_parallelism() == 8
    assert config.set_parallelism(-1).get_parallelism() == -1


def test_a_setting_in_code_without_effect_is_noted(caplog, monkeypatch):
    monkeypatch.setattr("firesteel.config.check._noted", set())
    with caplog.at_level(logging.WARNING, logger="firesteel"):
        ExecutionConfig().set_latency_tracking_interval(100).set_auto_watermark_interval(50)
        ExecutionConfig().set_latency_tracking_interval(200)
    (record,) = caplog.records
    assert "'metrics.latency.interval' is accepted, but has no effect" in record.getMessage()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        (options.EPOCH_MAX_RECORDS, "0"),
        (options.MAX_PARALLELISM, "32769"),
        (options.MAX_PARALLELISM, "-2"),
    ],
)
def test_a_number_out_of_range_is_an_error(option, value):
    with pytest.raises(ConfigurationError, match="expected an integer of at least"):
        Configuration().set_string(option.key, value).get(option)


@pytest.mark.parametrize("text", ["fixeddelay", "FIXED_DELAY", "fixed-delay"])
def test_words_of_a_choice_may_stand_apart_or_not(text):
    assert restart_options.RESTART_STRATEGY.parse(text) == "fixed-delay"


@pytest.mark.parametrize("parallelism", [0, -2, -7])
def test_a_parallelism_below_one_is_an_error(parallelism):
    with pytest.raises(ValueError, match="at least 1"):
        ExecutionConfig().set_parallelism(parallelism)


@given(st.dictionaries(st.text(), st.text(), max_size=4))
def test_global_job_parameters_come_back_even_through_text(parameters):
    config = ExecutionConfig().set_global_job_parameters(parameters)
    assert config.get_global_job_parameters() == parameters
    text = Configuration.from_dict(config.to_configuration().to_dict())
    assert ExecutionConfig(text).get_global_job_parameters() == parameters


def test_what_only_the_jvm_has_is_an_error():
    with pytest.raises(NeverSupportedError, match="JVM"):
        ExecutionConfig().enable_force_kryo()
    assert not ExecutionConfig().is_force_kryo_enabled()
