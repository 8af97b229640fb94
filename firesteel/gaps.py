"""Names of PyFlink that Firesteel lacks, each with its reason and the error a user gets.

A module with gaps ends with ``__getattr__ = gap_importer(__name__)`` (PEP 562). The assignment is
hidden from type checkers, which would otherwise believe that every name exists. Importing a name
listed here then raises an error with the reason and the alternative. A module that consists of
gaps only has no file: ``GapFinder`` answers for it. tests/compat compares this table with PyFlink's
public names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from firesteel.errors import NeverSupportedError, NotYetSupportedError

__all__ = ["GAPS", "Gap", "GapFinder", "GapStatus", "find_gap", "gap_importer", "install_finder"]


class GapStatus(Enum):
    NOT_YET = "not yet"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Gap:
    """The reason for which names of one module are missing."""

    status: GapStatus
    reason: str
    names: frozenset[str]


class NotYetImportError(NotYetSupportedError, ImportError):  # type: ignore[misc]  # name is never None
    """A name of PyFlink was imported that a later version will have."""

    def __reduce__(self) -> tuple[Any, ...]:
        # ImportError keeps ``name`` in a slot of its own, which the general way would lose.
        return type(self), (self.name, self.reason)


class NeverImportError(NeverSupportedError, ImportError):  # type: ignore[misc]  # name is never None
    """A name of PyFlink was imported that only makes sense on Flink's JVM."""

    def __reduce__(self) -> tuple[Any, ...]:
        # ImportError keeps ``name`` in a slot of its own, which the general way would lose.
        return type(self), (self.name, self.reason)


def _not_yet(reason: str, names: str) -> Gap:
    return Gap(GapStatus.NOT_YET, reason, frozenset(names.split()))


def _never(reason: str, names: str) -> Gap:
    return Gap(GapStatus.NEVER, reason, frozenset(names.split()))


_CONNECTOR = (
    "this connector comes in a later version; meanwhile read with Spark and env.from_dataframe, "
    "write with DataStream.to_dataframe, or derive a Source or Sink of your own from "
    "firesteel.datastream.connectors.base"
)
_JAVA = "it wraps an object of Flink's JVM, and Firesteel has none"

# By module (below ``firesteel.``), in the order of PyFlink's modules.
GAPS: Mapping[str, tuple[Gap, ...]] = {
    "common.utils": (_never(_JAVA, "JavaObjectWrapper"),),
    "common.watermark_strategy": (
        _never(f"{_JAVA}; use WatermarkStrategy instead", "AssignerWithPeriodicWatermarksWrapper"),
    ),
    "datastream.checkpoint_storage": (
        _never(f"{_JAVA}; it names a Java class", "CustomCheckpointStorage"),
    ),
    "datastream.connectors.base": (
        _never(
            "it changes the stream before a Java sink; transform the stream before sink_to",
            "StreamTransformer SupportsPreprocessing",
        ),
    ),
    "datastream.connectors.cassandra": (
        _not_yet(_CONNECTOR, "CassandraSink ConsistencyLevel"),
        _never(
            f"{_JAVA}",
            "CassandraCommitter CassandraFailureHandler ClusterBuilder MapperOptions",
        ),
    ),
    "datastream.connectors.file_system": (
        _never(
            "Flink itself has replaced it with FileSink; use FileSink with sink_to",
            "StreamingFileSink",
        ),
    ),
    "datastream.connectors.kafka": (
        _never(
            "Flink itself has replaced it with KafkaSource and KafkaSink",
            "FlinkKafkaConsumer FlinkKafkaProducer Semantic",
        ),
    ),
    "datastream.connectors.kinesis": (
        _not_yet(
            _CONNECTOR,
            "KinesisFirehoseSink KinesisFirehoseSinkBuilder KinesisStreamsSink "
            "KinesisStreamsSinkBuilder PartitionKeyGenerator",
        ),
        _never(
            f"{_JAVA}; Flink itself has retired this consumer",
            "FlinkKinesisConsumer KinesisDeserializationSchema KinesisShardAssigner "
            "WatermarkTracker",
        ),
    ),
    "datastream.connectors.pulsar": (
        _not_yet(
            _CONNECTOR,
            "MessageDelayer PulsarSink PulsarSinkBuilder PulsarSource PulsarSourceBuilder "
            "RangeGenerator StartCursor StopCursor TopicRoutingMode",
        ),
    ),
    "datastream.functions": (
        _never(
            f"{_JAVA}; derive a source from firesteel.datastream.connectors.base.Source",
            "SourceFunction",
        ),
    ),
    "datastream.state_backend": (_never(f"{_JAVA}; it names a Java class", "CustomStateBackend"),),
    "datastream.utils": (
        _never(
            "it converts objects of Flink's JVM, and Firesteel has none",
            "ResultTypeQueryable convert_to_python_obj create_hadoop_configuration "
            "create_java_properties pickled_bytes_to_python_obj",
        ),
    ),
}


def find_gap(module: str, name: str) -> Gap | None:
    """Return the gap that ``name`` of ``module`` falls into.

    ``module`` is the full path. A package answers for the modules directly in it, whose names it
    passes on.
    """
    path = module.removeprefix("firesteel.")
    depth = path.count(".") + 1
    for gap_module, gaps in GAPS.items():
        inside = gap_module.startswith(path + ".") and gap_module.count(".") == depth
        if gap_module != path and not inside:
            continue
        for gap in gaps:
            if name in gap.names:
                return gap
    return None


def gap_importer(module: str) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that explains its gaps."""

    def explain(name: str) -> NoReturn:
        gap = find_gap(module, name)
        if gap is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        error = NotYetImportError if gap.status is GapStatus.NOT_YET else NeverImportError
        raise error(f"{module}.{name}", gap.reason)

    return explain


class GapFinder(MetaPathFinder, Loader):
    """Finds the modules of PyFlink that consist of gaps only.

    Python asks it after all other finders, so a module with a file never reaches it.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = fullname.removeprefix("firesteel.")
        if name == fullname:
            return None
        return ModuleSpec(fullname, self) if name in GAPS else None

    def exec_module(self, module: ModuleType) -> None:
        module.__doc__ = "Names of PyFlink that Firesteel does not have."
        module.__getattr__ = gap_importer(module.__name__)  # type: ignore[method-assign]  # PEP 562


def install_finder() -> None:
    """Let ``import`` ask the gap finder last. Calling it again changes nothing."""
    if not any(isinstance(finder, GapFinder) for finder in sys.meta_path):
        sys.meta_path.append(GapFinder())
