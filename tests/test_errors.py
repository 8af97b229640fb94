"""Errors keep their facts when they are pickled, and list them in a useful order."""

import errno
import importlib
import pickle
import pkgutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

import firesteel
from firesteel import errors
from firesteel.checkpoint.storage.metadata_file import CheckpointNotFoundError
from firesteel.checkpoint.storage.storage import StorageError
from firesteel.connectors.elasticsearch.client import ElasticsearchUnavailableError
from firesteel.connectors.files.part_files import PartFileMissingError
from firesteel.connectors.files.paths import PathNotFoundError
from firesteel.connectors.jdbc.errors import JdbcConnectionError
from firesteel.connectors.kafka.errors import (
    KafkaAuthenticationError,
    KafkaAuthorizationError,
    KafkaUnreachableError,
)
from firesteel.connectors.rabbitmq.connection_config import RMQConnectionError
from firesteel.connectors.record_files import RecordFileMissingError

USER_ERROR = errors.UserFunctionError(
    job="wordcount",
    operator="Map",
    function="program.parse",
    file="program.py",
    line=12,
    record="'x'",
    traceback_text="Traceback (most recent call last):\nValueError: bad\n",
)

EXAMPLES = [
    errors.ConfigurationError("bad", key="a.b", suggestion="a.c"),
    errors.InvalidProgramError("no sink"),
    errors.NotYetSupportedError("iterate", "use a queue."),
    errors.NeverSupportedError("add_jars"),
    errors.TypeMismatchError("x", "Long", "expected int, got str.", operator="Map"),
    USER_ERROR,
    errors.InsufficientSlotsError(required=8, available=2),
    errors.JobExecutionError("failed", job_id="a" * 32, job_name="job"),
    errors.JobCancelledError("a" * 32),
    errors.UnstableKeyError(object, "its hash differs between processes.", operator="KeyBy"),
    errors.ChannelSequenceError("1->2", expected=3, actual=5),
]

# Errors of the operating system keep number and text outside of __dict__.
OS_ERRORS = [
    errors.WriteFailedError("/data/part-0", errno.ENOSPC, "No space left on device", "Sink"),
    errors.WriteFailedError("/data/part-0", None, "the store refused it"),
    StorageError("read", "s3://bucket/chk-1", "access denied", missing=True),
    CheckpointNotFoundError("/checkpoints", "the directory is empty"),
    PartFileMissingError("/out/part-0", 10, "it is gone"),
    PathNotFoundError("/in"),
    RecordFileMissingError("/cache/part-0 is gone"),
    KafkaUnreachableError("broker:9092", "it was asked for topics", "timed out"),
    KafkaAuthenticationError("broker:9092", "the password is wrong", "sasl.jaas.config"),
    KafkaAuthorizationError("broker:9092", "wrote to the topic orders"),
    JdbcConnectionError("jdbc:postgresql://localhost/shop", "it does not answer"),
    RMQConnectionError("localhost:5672", "it does not answer", "set_host"),
    ElasticsearchUnavailableError("http://localhost:9200", "it does not answer"),
]


@pytest.mark.parametrize("error", EXAMPLES + OS_ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_pickles_with_all_its_fields(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert copy.__dict__ == error.__dict__
    assert str(copy) == str(error)
    assert copy.args == error.args
    if isinstance(error, OSError):
        assert (copy.errno, copy.strerror) == (error.errno, error.strerror)


def test_every_kind_of_os_error_of_the_project_is_pickled_above():
    for module in pkgutil.walk_packages(firesteel.__path__, "firesteel."):
        if not module.name.startswith("firesteel.spark") and "__main__" not in module.name:
            importlib.import_module(module.name)

    def kinds(base):
        return {base}.union(*map(kinds, base.__subclasses__()))

    found = {
        kind.__name__
        for kind in kinds(errors.FiresteelError)
        if issubclass(kind, OSError) and kind.__module__.startswith("firesteel.")
    }
    assert found == {type(error).__name__ for error in OS_ERRORS}


@given(
    base=st.sampled_from([OSError, FileNotFoundError, ConnectionError, TimeoutError]),
    own_init=st.booleans(),
    number=st.none() | st.integers(1, 130),
    reason=st.text(),
)
def test_an_error_of_the_operating_system_pickles_with_its_text(base, own_init, number, reason):
    def init(self, *args):
        base.__init__(self, *args)
        self.fact = "fact"

    members = {"__init__": init} if own_init else {}
    kind = type("_SomeError", (errors.FiresteelError, base), members)
    error = kind(reason) if number is None else kind(number, reason)
    make, arguments = error.__reduce__()
    copy = make(*arguments)
    assert (str(copy), copy.args, copy.errno) == (str(error), error.args, error.errno)
    assert copy.__dict__ == error.__dict__


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (errors.ConfigurationError, ValueError),
        (errors.InvalidProgramError, ValueError),
        (errors.NotYetSupportedError, NotImplementedError),
        (errors.NeverSupportedError, NotImplementedError),
        (errors.TypeMismatchError, TypeError),
        (errors.UserFunctionError, RuntimeError),
        (errors.InsufficientSlotsError, RuntimeError),
        (errors.JobExecutionError, RuntimeError),
        (errors.UnstableKeyError, TypeError),
        (errors.ChannelSequenceError, RuntimeError),
    ],
)
def test_an_error_derives_from_the_builtin_one_expects(cls, builtin):
    assert issubclass(cls, errors.FiresteelError)
    assert issubclass(cls, builtin)


def test_the_users_traceback_comes_first():
    text = str(USER_ERROR)
    assert text.startswith("Traceback (most recent call last):\nValueError: bad\n")
    for fact in ("wordcount", "Map", "program.parse (program.py:12)", "record 'x'"):
        assert fact in text


def test_a_type_mismatch_names_the_operator_once_it_is_known():
    error = errors.TypeMismatchError("abc", "Long", "expected int, got str.")
    assert str(error) == "the value 'abc' does not fit the type Long: expected int, got str."
    error.operator = "Parse"
    assert str(error).startswith("Operator 'Parse': the value 'abc'")


def test_a_type_mismatch_of_an_unpicklable_value_pickles():
    error = errors.TypeMismatchError(lambda: 0, "Long", "expected int.")
    assert "lambda" in pickle.loads(pickle.dumps(error)).value


def test_too_few_slots_says_how_many_are_needed():
    assert "needs 8 task slots, but Spark offers 2" in str(errors.InsufficientSlotsError(8, 2))


def test_shorten_keeps_short_values_whole():
    assert errors.shorten(("a", 1)) == "('a', 1)"


@pytest.mark.parametrize(
    "value", ["x" * 10_000, list(range(10_000)), dict.fromkeys(range(99), "y" * 99)]
)
def test_shorten_bounds_the_length(value):
    assert len(errors.shorten(value)) <= 200
    assert len(errors.shorten(value, limit=50)) <= 50


def test_shorten_survives_a_repr_that_raises():
    class Broken:
        def __repr__(self):
            raise ValueError

    assert "Broken" in errors.shorten(Broken())
