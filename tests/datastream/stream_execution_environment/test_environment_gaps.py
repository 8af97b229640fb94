import importlib

import pytest

from firesteel.errors import NeverSupportedError, NotYetSupportedError


@pytest.mark.parametrize("name", ["add_jars", "add_classpaths", "add_source", "create_input"])
def test_environment_never(env, name):
    with pytest.raises(NeverSupportedError, match=name):
        getattr(env, name)("x")


@pytest.mark.parametrize("name", ["JsonRowSerializationSchema"])
def test_names_of_pyflink_that_are_missing_explain_themselves(name):
    module = importlib.import_module("firesteel.datastream.formats.json")
    with pytest.raises(NotYetSupportedError, match=name):
        getattr(module, name)
