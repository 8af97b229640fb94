"""The compatibility ledger: one entry for each public name of PyFlink 2.3 and each class member.

A name is *not yet* or *never* where ``firesteel.gaps`` or a rule below says so; the reason is the
one the user reads in the error. Everything else is claimed to work. test_ledger.py holds each
claim against the package.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from firesteel.errors import NeverSupportedError, NotYetSupportedError
from firesteel.gaps import GapStatus, find_gap
from tests.compat.signatures import parse

API_FILE = Path(__file__).with_name("pyflink-2.3-api.json")


class Status(Enum):
    WORKS = "works"
    NOT_YET = "not yet"
    NEVER = "never"


class Evidence(Enum):
    """The proof of a status."""

    USE = "the name is there and takes PyFlink's parameters"
    REFUSED = "an error, as in PyFlink"
    IMPORT = "importing it explains"
    CALL = "calling it explains"
    ABSENT = "not there"
    WRAPPER = "a constructor around a Java object"
    IDLE = "plain data that nothing takes yet"


@dataclass(frozen=True, slots=True)
class Rule:
    """The status of members that match ``pattern`` (module.Class.member, below pyflink.)."""

    pattern: str
    status: Status
    evidence: Evidence
    reason: str = ""


def _not_yet(pattern: str) -> Rule:
    return Rule(pattern, Status.NOT_YET, Evidence.CALL)


def _never(pattern: str) -> Rule:
    return Rule(pattern, Status.NEVER, Evidence.CALL)


def _refused(pattern: str) -> Rule:
    return Rule(pattern, Status.WORKS, Evidence.REFUSED)


def _jvm(pattern: str) -> Rule:
    reason = "it hands out an object of Flink's JVM, and Firesteel has none"
    return Rule(pattern, Status.NEVER, Evidence.ABSENT, reason)


def _idle(pattern: str, reason: str) -> Rule:
    return Rule(pattern, Status.NOT_YET, Evidence.IDLE, reason)


_KEYED = "datastream.data_stream.KeyedStream"
_STREAM = "datastream.data_stream.DataStream"
_ENVIRONMENT = "datastream.stream_execution_environment.StreamExecutionEnvironment"

# PyFlink inherits these into KeyedStream and raises in each of them (or in Java).
_REFUSED_ON_KEYED_STREAM = """
    broadcast disable_chaining force_non_parallel forward get_name get_side_output name
    partition_custom rebalance rescale set_buffer_timeout set_description set_max_parallelism
    set_parallelism set_uid_hash shuffle slot_sharing_group start_new_chain uid
"""

# The first rule that matches counts.
RULES: tuple[Rule, ...] = (
    _jvm("*.get_java_*"),
    # Settings that no part of the runtime reads.
    _idle("common.execution_config.*object_reuse*", "operators always pass on the same object; a function must not change its argument"),
    _idle("common.execution_config.*latency_tracking_interval", "latency is not tracked in this version"),
    _idle("common.execution_config.*task_cancellation_interval", "a function is interrupted once, at the end of the cancellation timeout"),
    Rule("common.input_dependency_constraint.*", Status.NEVER, Evidence.IDLE, "no method accepts it, in PyFlink as in Firesteel"),
    # Results kept for the next job.
    _refused(f"{_KEYED}.cache"),
    # What makes no sense on a keyed stream.
    *(_refused(f"{_KEYED}.{name}") for name in _REFUSED_ON_KEYED_STREAM.split()),
    Rule(f"{_KEYED}.AccumulateType", Status.NEVER, Evidence.ABSENT, "an internal class of PyFlink"),
    # Files.
    Rule("datastream.connectors.file_system.FileSink.BaseBuilder", Status.NEVER, Evidence.ABSENT, "the common base of PyFlink's two builders"),
    Rule("datastream.connectors.file_system.FileSink.get_transformer", Status.NEVER, Evidence.ABSENT, "it serves PyFlink's Java sinks"),
    Rule("datastream.connectors.kafka.KafkaSink.get_transformer", Status.NEVER, Evidence.ABSENT, "it serves PyFlink's Java sinks"),
    # Java classes, jars and serializers.
    _never("datastream.connectors.elasticsearch.*.get_http_host_class"),
    _never(f"{_ENVIRONMENT}.add_jars"),
    _never(f"{_ENVIRONMENT}.add_classpaths"),
    _never(f"{_ENVIRONMENT}.add_source"),
    _never("common.execution_config.ExecutionConfig.enable_force_*"),
    _never("common.execution_config.ExecutionConfig.disable_generic_types"),
    _never("datastream.functions.SinkFunction.__init__"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of PyFlink. ``member`` is empty for the name itself."""

    module: str
    name: str
    member: str
    # What the JSON says about it: "class", "attribute", or a signature.
    form: str
    status: Status
    evidence: Evidence
    stated_reason: str = ""

    @property
    def path(self) -> str:
        return ".".join(part for part in (self.module, self.name, self.member) if part)

    @property
    def our_module(self) -> str:
        return self.module.replace("pyflink", "firesteel", 1)

    def reason(self) -> str:
        """Return what the user is told. Empty for what works."""
        if self.status is Status.WORKS:
            return self.evidence.value if self.evidence is Evidence.REFUSED else ""
        if self.stated_reason:
            return self.stated_reason
        if self.evidence is Evidence.IMPORT:
            gap = find_gap(self.our_module, self.name)
            return gap.reason if gap is not None else ""
        error = call_blank(self)
        return getattr(error, "reason", "")


_WRAPPER_REASON = "PyFlink's constructor takes a Java object; programs use the factory methods"


def _rule_for(path: str) -> Rule | None:
    below = path.removeprefix("pyflink.")
    return next((rule for rule in RULES if fnmatchcase(below, rule.pattern)), None)


def _entry(module: str, name: str, member: str, form: str, defined_in: str) -> Entry:
    gap = find_gap(defined_in.replace("pyflink", "firesteel", 1), name)
    if gap is not None:
        status = Status.NOT_YET if gap.status is GapStatus.NOT_YET else Status.NEVER
        return Entry(module, name, member, form, status, Evidence.IMPORT)
    # A name that a package passes on shares the fate of the original.
    path = ".".join(part for part in (defined_in, name, member) if part)
    rule = _rule_for(path)
    if rule is None and _wraps_a_java_object(member, form):
        return Entry(module, name, member, form, Status.NEVER, Evidence.WRAPPER, _WRAPPER_REASON)
    if rule is None:
        return Entry(module, name, member, form, Status.WORKS, Evidence.USE)
    return Entry(module, name, member, form, rule.status, rule.evidence, rule.reason)


def _wraps_a_java_object(member: str, form: str) -> bool:
    if member != "__init__" or not form.startswith("("):
        return False
    return any(p.jvm_only and not p.optional for p in parse(form))


@cache
def entries() -> tuple[Entry, ...]:
    return tuple(_entries(json.loads(API_FILE.read_text())))


def _entries(api: dict[str, dict[str, dict[str, Any]]]) -> Iterator[Entry]:
    for module, names in api.items():
        for name, facts in names.items():
            defined_in = facts["defined_in"]
            form = facts.get("signature") or facts["kind"]
            yield _entry(module, name, "", form, defined_in)
            if defined_in != module:
                continue  # members are counted once, where the class is defined
            for member, member_form in facts.get("members", {}).items():
                yield _entry(module, name, member, member_form, defined_in)


def owner(entry: Entry) -> Any:
    """Return our class or function of that name."""
    return getattr(importlib.import_module(entry.our_module), entry.name)


def blank(cls: type[Any]) -> Any:
    """Return an instance without calling __init__: enough for a method that only raises."""
    if inspect.isabstract(cls):
        cls = type(cls.__name__, (cls,), {})
        cls.__abstractmethods__ = frozenset()
    return object.__new__(cls)


def call_blank(entry: Entry) -> Exception | None:
    """Call the member with None for each required parameter; return what it raises."""
    cls = owner(entry)
    try:
        if entry.member == "__init__":
            cls(*_nones(cls.__init__, skip_self=True))
        else:
            method = getattr(blank(cls), entry.member)
            method(*_nones(method, skip_self=False))
    except Exception as error:
        return error
    return None


def _nones(function: Callable[..., Any], *, skip_self: bool) -> list[None]:
    parameters = list(inspect.signature(function).parameters.values())[skip_self:]
    ordinary = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [None for p in parameters if p.kind is ordinary and p.default is p.empty]


PROMISED_ERROR = {Status.NOT_YET: NotYetSupportedError, Status.NEVER: NeverSupportedError}
