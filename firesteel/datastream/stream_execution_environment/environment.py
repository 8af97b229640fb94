"""StreamExecutionEnvironment: records a program, and runs it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any, NoReturn

from firesteel.common.configuration import Configuration
from firesteel.common.execution_config import ExecutionConfig
from firesteel.common.job_client import JobClient
from firesteel.common.job_execution_result import JobExecutionResult
from firesteel.common.restart_strategy import RestartStrategyConfiguration
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config import check_keys, checkpoint_options, options
from firesteel.config.loader import load_configuration, override
from firesteel.connectors.base import Source
from firesteel.connectors.collection import CollectionSource
from firesteel.connectors.number_sequence import NumberSequenceSource
from firesteel.connectors.socket import SocketTextStreamSource
from firesteel.datastream.checkpoint_config import CheckpointConfig
from firesteel.datastream.checkpointing_mode import CheckpointingMode
from firesteel.datastream.data_stream.arguments import (
    ProgramTypeError,
    as_type,
    check_not_aligned,
    require_instance,
)
from firesteel.datastream.data_stream.cache import CacheWriting, StreamCache
from firesteel.datastream.data_stream.collected import CloseableIterator, CollectBuffer
from firesteel.datastream.data_stream.data_stream import DataStream
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.slot_sharing_group import SlotSharingGroup
from firesteel.datastream.state_backend import StateBackend
from firesteel.datastream.stream_execution_environment import (
    cached_files,
    data_frame_types,
    local_parallelism,
    python_dependencies,
    typed_elements,
)
from firesteel.datastream.stream_execution_environment.explanation import draw
from firesteel.datastream.stream_execution_environment.interaction import is_interactive
from firesteel.datastream.stream_execution_environment.job_compiler import (
    NO_BUFFER_TIMEOUT,
    CompiledJob,
    buffer_timeout,
    compile_job,
    warn_of_sinks_that_never_commit,
)
from firesteel.errors import (
    InvalidProgramError,
    NeverSupportedError,
    shorten,
)
from firesteel.graph.operator_specs import DataFrameSourceSpec, OperatorSpec, SourceSpec
from firesteel.graph.parallelism import check_max_parallelism, check_parallelism
from firesteel.graph.rendering import plan_json
from firesteel.graph.settings import check_buffer_timeout
from firesteel.graph.transformations import Origin, Transformation

__all__ = ["StreamExecutionEnvironment"]

_INTERRUPTED = 130
_JVM = "there is no JVM that could load it"


class StreamExecutionEnvironment:
    """The context of a program: sources start here, ``execute`` runs what was added to it.

    All settings live in one Configuration, so a config file, ``configure`` and the setters below
    are three ways to the same thing; what is said last counts.
    """

    _default_local_parallelism: int | None = None

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration(configuration)
        self._transformations: list[Transformation] = []
        self._caches: weakref.WeakSet[StreamCache] = weakref.WeakSet()

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | None = None,
    ) -> StreamExecutionEnvironment:
        """An environment with the settings of config.yaml, and of ``configuration`` on top."""
        return StreamExecutionEnvironment(load_configuration(configuration))

    # -- settings ------------------------------------------------------------------------------

    def get_config(self) -> ExecutionConfig:
        return ExecutionConfig(self._configuration)

    def configure(self, configuration: Configuration) -> None:
        """Take over all settings of ``configuration``."""
        check_keys(configuration.key_set())
        override(self._configuration, configuration)

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Set the parallelism of all operators that set none themselves."""
        self._configuration.set(options.DEFAULT_PARALLELISM, check_parallelism(parallelism))
        return self

    def get_parallelism(self) -> int:
        parallelism = self._configuration.get_optional(options.DEFAULT_PARALLELISM)
        if parallelism is not None:
            return check_parallelism(parallelism)
        master = self._configuration.get(options.SPARK_MASTER)
        return local_parallelism.default_parallelism(master, self.get_default_local_parallelism())

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """Set the number of key groups of all operators that set none themselves."""
        check_max_parallelism(max_parallelism)
        self._configuration.set(options.MAX_PARALLELISM, max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """-1 where nothing was set: then it follows from each operator's parallelism."""
        return self._configuration.get(options.MAX_PARALLELISM)

    def get_default_local_parallelism(self) -> int:
        """What counts where neither program nor configuration says it: the number of cores."""
        return self._default_local_parallelism or local_parallelism.available_cores()

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set it for all environments of this process, as in Flink."""
        StreamExecutionEnvironment._default_local_parallelism = check_parallelism(parallelism)

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise ProgramTypeError(
                f"set_runtime_mode expects a RuntimeExecutionMode, not {shorten(execution_mode)}."
            )
        self._configuration.set(options.RUNTIME_MODE, execution_mode.name)
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """How long records may wait in a buffer; 0: not at all, -1: until it is full."""
        check_buffer_timeout(timeout_millis)
        enabled = timeout_millis != NO_BUFFER_TIMEOUT
        self._configuration.set(options.BUFFER_TIMEOUT_ENABLED, enabled)
        if enabled:
            self._configuration.set(options.BUFFER_TIMEOUT, timedelta(milliseconds=timeout_millis))
        return self

    def get_buffer_timeout(self) -> int:
        return buffer_timeout(self._configuration)

    def set_state_backend(self, state_backend: StateBackend) -> StreamExecutionEnvironment:
        """Say where keyed state lives. PyFlink 2 has only the setting ``state.backend.type``."""
        require_instance("set_state_backend", state_backend, StateBackend)
        state_backend._configure(self._configuration)
        return self

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Make a vertex of its own of each operator."""
        self._configuration.set(options.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        return self._configuration.get(options.OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        return self._configuration.get(options.CHAIN_DIFFERENT_MAX_PARALLELISM)

    def register_slot_sharing_group(
        self, slot_sharing_group: SlotSharingGroup
    ) -> StreamExecutionEnvironment:
        """Accepted for a group without resources; Spark gives all slots the same ones."""
        require_instance("register_slot_sharing_group", slot_sharing_group, SlotSharingGroup)
        return self

    # -- checkpoints and restarts --------------------------------------------------------------

    def enable_checkpointing(
        self, interval: int, mode: CheckpointingMode | None = None
    ) -> StreamExecutionEnvironment:
        """Take a checkpoint every ``interval`` milliseconds."""
        config = self.get_checkpoint_config().set_checkpoint_interval(interval)
        if mode is not None:
            config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        return CheckpointConfig(self._configuration)

    def get_checkpoint_interval(self) -> int:
        """Milliseconds; -1 where there are no checkpoints."""
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """Accepted: every state backend of Firesteel writes a changelog."""
        self._configuration.set(checkpoint_options.CHANGELOG_STATE_BACKEND, enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """None where nothing was said."""
        return self._configuration.get_optional(checkpoint_options.CHANGELOG_STATE_BACKEND)

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Where savepoints go if the one who asks for one does not say."""
        self._configuration.set(checkpoint_options.SAVEPOINT_DIR, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        return self._configuration.get(checkpoint_options.SAVEPOINT_DIR)

    def set_restart_strategy(
        self, restart_strategy_configuration: RestartStrategyConfiguration
    ) -> StreamExecutionEnvironment:
        """Say what happens when the job fails. In PyFlink 1; PyFlink 2 has the keys only."""
        require_instance(
            "set_restart_strategy", restart_strategy_configuration, RestartStrategyConfiguration
        )
        settings = restart_strategy_configuration.to_settings()
        self._configuration.add_all(Configuration.from_dict(settings))
        return self

    # -- files that travel with the job --------------------------------------------------------

    def add_python_file(self, file_path: str) -> None:
        """Put a file, package or zip on the Python path of the tasks."""
        python_dependencies.add_file(self._configuration, file_path)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack a zip file in the working directory of the tasks, as the directory ``target_dir``.

        Functions find it by its relative path. Without a target it is named like the archive.
        """
        python_dependencies.add_archive(self._configuration, archive_path, target_dir)

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """Install a requirements.txt where the tasks run."""
        python_dependencies.set_requirements(
            self._configuration, requirements_file_path, requirements_cache_dir
        )

    def set_python_executable(self, python_exec: str) -> None:
        """Set the interpreter that runs the tasks."""
        self._configuration.set(options.PYTHON_EXECUTABLE, python_exec)

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Bring a file or directory to all tasks.

        Functions find it with ``runtime_context.get_distributed_cache().get_file(name)``, which
        PyFlink lacks: there only Java functions can read it.
        """
        cached_files.register(self._configuration, file_path, name, executable=executable)

    # -- sources -------------------------------------------------------------------------------

    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy | None,
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """A stream of what a source reads."""
        require_instance("from_source", source, Source)
        _check_strategy("from_source", watermark_strategy)
        value_type = as_type(
            "from_source", source.get_produced_type() if type_info is None else type_info
        )
        # Sources of ours say rightly what they produce.
        ours = type_info is None and type(source).__module__.startswith("firesteel.")
        spec = SourceSpec(source, _copy_of(watermark_strategy), checked=not ours)
        return self._source(source_name, spec, value_type)

    def from_collection(
        self, collection: Iterable[Any], type_info: TypeInformation | None = None
    ) -> DataStream:
        """A bounded stream of the elements, read by one subtask."""
        if not isinstance(collection, Iterable):
            raise ProgramTypeError(
                f"from_collection expects an iterable, but got {shorten(collection)} of type "
                f"{type(collection).__qualname__}."
            )
        value_type = as_type("from_collection", type_info)
        if type_info is not None:
            collection = typed_elements.fit(collection, value_type)
        source = CollectionSource(collection, value_type)
        stream = self._source("Collection Source", SourceSpec(source), value_type)
        return stream.force_non_parallel()

    def from_sequence(self, start: int, end: int) -> DataStream:
        """The whole numbers from ``start`` to ``end``, both included. Not in PyFlink."""
        source = SourceSpec(NumberSequenceSource(start, end))
        return self._source("Sequence Source", source, Types.LONG())

    def socket_text_stream(
        self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0
    ) -> DataStream:
        """The lines that a server sends; they are lost if the job fails. Not in PyFlink."""
        source = SourceSpec(SocketTextStreamSource(hostname, port, delimiter, max_retry))
        stream = self._source("Socket Stream", source, Types.STRING())
        return stream.force_non_parallel()

    def from_dataframe(
        self,
        data_frame: Any,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "DataFrame",
    ) -> DataStream:
        """A stream of the rows of a Spark DataFrame, batch or streaming. Not in PyFlink."""
        if not all(hasattr(data_frame, name) for name in ("columns", "schema", "isStreaming")):
            raise ProgramTypeError(
                f"from_dataframe expects a Spark DataFrame, but got {shorten(data_frame)} of type "
                f"{type(data_frame).__qualname__}."
            )
        _check_strategy("from_dataframe", watermark_strategy)
        value_type = data_frame_types.row_type(data_frame.schema)
        spec = DataFrameSourceSpec(
            value_type=value_type,
            watermark_strategy=_copy_of(watermark_strategy),
            bounded=not data_frame.isStreaming,
        )
        return self._source(source_name, spec, value_type, driver_object=data_frame)

    def _source(
        self,
        name: str,
        spec: OperatorSpec,
        value_type: TypeInformation,
        driver_object: Any = None,
    ) -> DataStream:
        """A source alone is no program: it takes part once an operator reads it, as in Flink."""
        transformation = Transformation(
            name=name, spec=spec, output_type=value_type, driver_object=driver_object
        )
        return DataStream(self, (Origin(transformation),), value_type)

    # -- running -------------------------------------------------------------------------------

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run what was added since the last job, and wait for its end."""
        client = self._launch(self._compile(job_name))
        try:
            return client.get_job_execution_result().result()
        except KeyboardInterrupt:
            client._cancel_and_wait()
            if is_interactive():
                raise
            # A script ends as the shell expects, without a traceback of ours.
            raise SystemExit(_INTERRUPTED) from None

    def execute_async(self, job_name: str = "Flink Streaming Job") -> JobClient:
        """Run what was added since the last job, and return at once."""
        return self._launch(self._compile(job_name))

    def get_spark_session(self) -> Any:
        """The ``pyspark.sql.SparkSession`` that jobs run on, to make DataFrames with. Not in PyFlink.

        If there is none yet, it is started, with a slot for each core or as many as this
        environment's parallelism needs.
        """
        from firesteel.spark.session import user_session

        return user_session(self.get_parallelism(), self._configuration)

    def get_execution_plan(self) -> str:
        """The plan as JSON, in the form that Flink prints. Nothing runs."""
        return plan_json(self._compile().stream_graph)

    def explain(self, graph: str = "job", style: str = "text") -> str:
        """Draw what was added so far: the "stream", "job" or "execution" graph.

        ``style`` is "text", "mermaid" or "dot". Not in PyFlink. Nothing runs.
        """
        return draw(self._compile(), graph, style)

    def close(self) -> None:
        """Forget what was added and has not run."""
        self._transformations.clear()

    def _add_operator(self, transformation: Transformation) -> None:
        self._transformations.append(transformation)

    def _cache(
        self,
        origins: tuple[Origin, ...],
        value_type: TypeInformation,
        parallelism: int | None,
    ) -> StreamCache:
        root = self._configuration.get_optional(options.WORKING_DIR)
        cache = StreamCache(origins, value_type, parallelism, root)
        self._caches.add(cache)
        return cache

    def _compile(self, job_name: str | None = None, *more: Transformation) -> CompiledJob:
        transformations = [*self._transformations, *more]
        caches = [cache for cache in self._caches if cache.is_computed_by(transformations)]
        job = compile_job(
            [*transformations, *(cache.writing() for cache in caches)],
            self._configuration,
            self.get_parallelism(),
            job_name,
        )
        if caches and job.settings.runtime_mode is not RuntimeExecutionMode.BATCH:
            raise InvalidProgramError(
                "cache() works in batch jobs only, as in Flink. Where all sources are bounded, "
                "set_runtime_mode(RuntimeExecutionMode.BATCH) makes it one."
            )
        return job

    def _launch(self, job: CompiledJob) -> JobClient:
        """What has been compiled is taken out of the environment, whether its job ends well or not."""
        from firesteel.master.launcher import launch

        self._transformations.clear()
        warn_of_sinks_that_never_commit(job)
        client = launch(job.stream_graph, job.levels, job.settings)
        for watching in job.stream_graph.driver_objects.values():
            if isinstance(watching, CollectBuffer):
                _end_with_the_job(watching, client)
            elif isinstance(watching, CacheWriting):
                watching.cache.written_by(client.get_job_execution_result(), watching.source)
        return client

    def _execute_and_collect(
        self, collect: Transformation, buffer: CollectBuffer, job_name: str | None
    ) -> CloseableIterator:
        """Run the job with ``collect``, whose records come out of ``buffer``."""
        client = self._launch(self._compile(job_name, collect))
        result = client.get_job_execution_result()

        def close() -> None:
            buffer.close()
            if not result.done():
                client._cancel_and_wait()

        return CloseableIterator(iter(buffer), close)

    # -- not yet, and never --------------------------------------------------------------------

    def add_source(
        self,
        source_func: Any,
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
    ) -> NoReturn:
        raise NeverSupportedError(
            "StreamExecutionEnvironment.add_source",
            "a SourceFunction is a Java object; derive from Source and call from_source()",
        )

    def create_input(self, input_format: Any, type_info: TypeInformation | None = None) -> NoReturn:
        raise NeverSupportedError(
            "StreamExecutionEnvironment.create_input",
            "an InputFormat is a Java object; derive from Source and call from_source()",
        )

    def add_jars(self, *jars_path: str) -> NoReturn:
        raise NeverSupportedError("StreamExecutionEnvironment.add_jars", _JVM)

    def add_classpaths(self, *classpaths: str) -> NoReturn:
        raise NeverSupportedError("StreamExecutionEnvironment.add_classpaths", _JVM)


def _copy_of(strategy: WatermarkStrategy | None) -> WatermarkStrategy | None:
    """A program may go on changing the strategy, as PyFlink allows it."""
    return None if strategy is None else replace(strategy)


def _check_strategy(operation: str, strategy: WatermarkStrategy | None) -> None:
    if strategy is None:
        return
    require_instance(operation, strategy, WatermarkStrategy)
    if operation != "from_source":
        check_not_aligned(operation, strategy)


def _end_with_the_job(buffer: CollectBuffer, client: JobClient) -> None:
    """Whoever reads the buffer learns how the job ended."""
    result = client.get_job_execution_result()

    def wait() -> None:
        buffer.end(result.exception())

    threading.Thread(target=wait, name="firesteel-collect", daemon=True).start()


# For other parts of Firesteel. As methods they would look like part of the API.


def configuration_of(environment: StreamExecutionEnvironment) -> Configuration:
    """The settings of an environment."""
    return environment._configuration


def compiled_job(
    environment: StreamExecutionEnvironment, job_name: str, *sinks: Transformation
) -> CompiledJob:
    """The job of the program so far, with further sinks."""
    return environment._compile(job_name, *sinks)
