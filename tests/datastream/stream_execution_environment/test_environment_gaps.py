import importlib

import pytest

from firesteel.errors import NeverSupportedError, NotYetSupportedError


@pytest.mark.parametrize("name", ["add_jars", "add_classpaths", "add_source"])
def test_environment_never(env, name):
    with pytest.raises(NeverSupportedError, match=name):
        getattr(env, name)("x")


@pytest.mark.parametrize(
    ("module_name", "name"),
    [("firesteel.datastream.connectors.pulsar", "PulsarSource")],
)
def test_names_of_pyflink_that_are_missing_explain_themselves(module_name, name):
    module = importlib.import_module(module_name)
    with pytest.raises(NotYetSupportedError, match=name):
        getattr(module, name)
