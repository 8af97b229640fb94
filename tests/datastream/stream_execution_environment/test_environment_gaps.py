import firesteel.datastream.formats.json
import pytest

from firesteel.errors import NeverSupportedError, NotYetSupportedError


@pytest.mark.parametrize("name", ["add_jars", "add_classpaths", "add_source", "create_input"])
def test_environment_never(env, name):
    with pytest.raises(NeverSupportedError, match=name):
        getattr(env, name)("x")


@pytest.mark.parametrize("name", ["JsonRowSerializationSchema"])
def test_names_of_pyflink_that_are_missing_explain_themselves(name):
    with pytest.raises(NotYetSupportedError, match=name):
        getattr(firesteel.datastream.formats.json, name)
