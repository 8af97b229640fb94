import pytest

import firesteel.datastream
from firesteel.errors import NeverSupportedError, NotYetSupportedError


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cache", ()),
        ("iterate", ()),
        ("join", (None,)),
        ("co_group", (None,)),
    ],
)
def test_streams(env, name, arguments):
    with pytest.raises(NotYetSupportedError, match=f"DataStream.{name}"):
        getattr(env.from_sequence(1, 2), name)(*arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("interval_join", (None,)),
    ],
)
def test_keyed_streams(env, name, arguments):
    with pytest.raises(NotYetSupportedError, match=f"KeyedStream.{name}"):
        getattr(env.from_sequence(1, 2).key_by(abs), name)(*arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("enable_checkpointing", (1000,)),
        ("get_checkpoint_config", ()),
        ("get_checkpointing_mode", ()),
        ("get_checkpointing_consistency_mode", ()),
        ("enable_changelog_state_backend", (True,)),
        ("set_default_savepoint_directory", ("/tmp",)),
    ],
)
def test_environment_not_yet(env, name, arguments):
    with pytest.raises(NotYetSupportedError, match=name):
        getattr(env, name)(*arguments)


@pytest.mark.parametrize("name", ["add_jars", "add_classpaths", "add_source", "create_input"])
def test_environment_never(env, name):
    with pytest.raises(NeverSupportedError, match=name):
        getattr(env, name)("x")


def test_what_is_not_there_is_said_as_it_is(env):
    assert env.get_checkpoint_interval() == -1
    assert env.get_default_savepoint_directory() is None
    assert env.is_changelog_state_backend_enabled() is None
    assert not env.is_unaligned_checkpoints_enabled()
    assert not env.is_force_unaligned_checkpoints()


@pytest.mark.parametrize("name", ["CheckpointConfig"])
def test_names_of_pyflink_that_are_missing_explain_themselves(name):
    with pytest.raises(NotYetSupportedError, match=name):
        getattr(firesteel.datastream, name)
