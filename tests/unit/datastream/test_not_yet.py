import pytest

import firesteel.datastream.formats.json
from firesteel.errors import NeverSupportedError, NotYetSupportedError


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cache", ()),
        ("iterate", ()),
    ],
)
def test_streams(env, name, arguments):
    with pytest.raises(NotYetSupportedError, match=f"DataStream.{name}"):
        getattr(env.from_sequence(1, 2), name)(*arguments)


@pytest.mark.parametrize("name", ["add_jars", "add_classpaths", "add_source", "create_input"])
def test_environment_never(env, name):
    with pytest.raises(NeverSupportedError, match=name):
        getattr(env, name)("x")


@pytest.mark.parametrize("name", ["JsonRowSerializationSchema"])
def test_names_of_pyflink_that_are_missing_explain_themselves(name):
    with pytest.raises(NotYetSupportedError, match=name):
        getattr(firesteel.datastream.formats.json, name)
