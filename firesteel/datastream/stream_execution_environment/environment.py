"""StreamExecutionEnvironment: records a program, and runs it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any, NoReturn

from firesteel.common.configuration import Configuration
from firesteel.common.execution_config import ExecutionConfig
from firesteel.common.io import InputFormat
from firesteel.common.job_client import JobClient
from firesteel.common.job_execution_result import DetachedJobExecutionResult, JobExecutionResult
from firesteel.common.restart_strategy import RestartStrategyConfiguration
from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.config import check_keys, checkpoint_options, options, rest_options
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
    check_timestamp_assigner,
    require_instance,
)
from firesteel.datastream.data_stream.data_stream import DataStream
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.slot_sharing_group import SlotSharingGroup
from firesteel.datastream.state_backend import StateBackend
from firesteel.datastream.stream_execution_environment import program_process, shipped_files
from firesteel.datastream.stream_execution_environment.job_compiler import (
    NO_BUFFER_TIMEOUT,
    CompiledJob,
    buffer_timeout,
)
from firesteel.datastream.stream_execution_environment.program import Program
from firesteel.datastream.stream_execution_environment.source_types import (
    data_frame_type,
    fit_elements,
)
from firesteel.errors import NeverSupportedError, shorten
from firesteel.graph.operator_specs import DataFrameSourceSpec, OperatorSpec, SourceSpec
from firesteel.graph.parallelism import check_max_parallelism, check_parallelism
from firesteel.graph.rendering import plan_json
from firesteel.graph.settings import check_buffer_timeout
from firesteel.graph.transformations import Origin, Transformation
from firesteel.stability import public_evolving

__all__ = ["StreamExecutionEnvironment"]

_INTERRUPTED = 130
_JVM = "Firesteel runs Python code and has no JVM to load Java classes"


class StreamExecutionEnvironment:
    """The context of a program. Streams start at its sources, and ``execute`` runs them.

    All settings are in one Configuration. A configuration file, ``configure`` and the setters write to
    it, and the last one counts.

    Args:
        configuration: The settings. ``get_execution_environment`` also reads config.yaml.

    >>> env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    >>> sink = env.from_collection(["to be", "or not"]).flat_map(str.split).print()
    >>> result = env.execute("words")
    to
    be
    or
    not
    """

    _default_local_parallelism: int | None = None

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration(configuration)
        # For Firesteel's own modules.
        self.program = Program(self._configuration)

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | None = None,
    ) -> StreamExecutionEnvironment:
        """Return an environment with the settings of config.yaml.

        Args:
            configuration: Settings that override those of the file.

        >>> settings = Configuration().set_integer("parallelism.default", 4)
        >>> StreamExecutionEnvironment.get_execution_environment(settings).get_parallelism()
        4
        """
        return StreamExecutionEnvironment(load_configuration(configuration))

    @staticmethod
    @public_evolving
    def create_local_environment_with_web_ui(
        configuration: Configuration | None = None,
    ) -> StreamExecutionEnvironment:
        """Return an environment whose jobs run in this process and show up in a dashboard.

        The dashboard is at http://localhost:8081, unless ``rest.port`` says otherwise. PyFlink does not
        have this method; it is Flink's ``createLocalEnvironmentWithWebUI``.

        Args:
            configuration: Settings that override those of config.yaml.

        >>> settings = Configuration().set_string("rest.port", "0")
        >>> env = StreamExecutionEnvironment.create_local_environment_with_web_ui(settings)
        >>> env.set_parallelism(2).get_parallelism()
        2
        """
        loaded = load_configuration(configuration)
        loaded.set(rest_options.REST_ENABLED, True)
        loaded.set(options.TARGET, "local")
        return StreamExecutionEnvironment(loaded)

    # -- settings ------------------------------------------------------------------------------

    def get_config(self) -> ExecutionConfig:
        """Return the ExecutionConfig, a view of the settings.

        >>> env.get_config().get_parallelism()
        1
        """
        return ExecutionConfig(self._configuration)

    def configure(self, configuration: Configuration) -> None:
        """Take over all settings of a configuration.

        Args:
            configuration: The settings.

        Raises:
            ConfigurationError: A key is unknown.

        >>> env.configure(Configuration().set_integer("parallelism.default", 4))
        >>> env.get_parallelism()
        4
        """
        check_keys(configuration.key_set())
        override(self._configuration, configuration)

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Set the parallelism of all operators that set none.

        Args:
            parallelism: A number from 1 on.

        >>> env.set_parallelism(4).get_parallelism()
        4
        """
        self._configuration.set(options.DEFAULT_PARALLELISM, check_parallelism(parallelism))
        return self

    def get_parallelism(self) -> int:
        """Return the parallelism of operators that set none. The default is the number of cores.

        >>> env.get_parallelism()
        1
        """
        parallelism = self._configuration.get_optional(options.DEFAULT_PARALLELISM)
        if parallelism is not None:
            return check_parallelism(parallelism)
        if self.program.is_remote:
            # The cores of this machine are not those of the session. It is 1, as in Flink.
            return 1
        master = self._configuration.get(options.SPARK_MASTER)
        return program_process.default_parallelism(master, self.get_default_local_parallelism())

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """Set the number of key groups of all operators that set none.

        Args:
            max_parallelism: A number from 1 to 32768. State cannot be rescaled beyond it.

        >>> env.set_max_parallelism(720).get_max_parallelism()
        720
        """
        check_max_parallelism(max_parallelism)
        self._configuration.set(options.MAX_PARALLELISM, max_parallelism)
        return self

    def get_max_parallelism(self) -> int:
        """Return the number of key groups, or -1 if none is set.

        Without a setting it follows from the parallelism of each operator.

        >>> env.get_max_parallelism()
        -1
        """
        return self._configuration.get(options.MAX_PARALLELISM)

    def get_default_local_parallelism(self) -> int:
        """Return the parallelism for programs without any setting: the number of cores.

        >>> env.get_default_local_parallelism() >= 1
        True
        """
        return self._default_local_parallelism or program_process.available_cores()

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the parallelism for programs without any setting, in all environments of this process.

        Args:
            parallelism: A number from 1 on.

        >>> env.set_default_local_parallelism(2)
        >>> StreamExecutionEnvironment().get_parallelism()
        2
        """
        StreamExecutionEnvironment._default_local_parallelism = check_parallelism(parallelism)

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """Set the runtime mode.

        Args:
            execution_mode: STREAMING (the default), BATCH or AUTOMATIC.

        >>> _ = env.set_runtime_mode(RuntimeExecutionMode.BATCH)
        >>> words = env.from_collection(["a", "a"]).map(lambda word: (word, 1))
        >>> list(words.key_by(lambda pair: pair[0]).sum(1).execute_and_collect())
        [('a', 2)]
        """
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise ProgramTypeError(
                f"set_runtime_mode expects a RuntimeExecutionMode, not {shorten(execution_mode)}."
            )
        self._configuration.set(options.RUNTIME_MODE, execution_mode.name)
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """Set how long records may wait in a buffer.

        Args:
            timeout_millis: Milliseconds; 0 sends each record at once, -1 waits until a buffer is full.

        >>> env.set_buffer_timeout(10).get_buffer_timeout()
        10
        """
        check_buffer_timeout(timeout_millis)
        enabled = timeout_millis != NO_BUFFER_TIMEOUT
        self._configuration.set(options.BUFFER_TIMEOUT_ENABLED, enabled)
        if enabled:
            self._configuration.set(options.BUFFER_TIMEOUT, timedelta(milliseconds=timeout_millis))
        return self

    def get_buffer_timeout(self) -> int:
        """Return the buffer timeout in milliseconds.

        >>> env.get_buffer_timeout()
        100
        """
        return buffer_timeout(self._configuration)

    def set_state_backend(self, state_backend: StateBackend) -> StreamExecutionEnvironment:
        """Set the store of keyed state. PyFlink 2 has only the setting ``state.backend.type``.

        Args:
            state_backend: The backend.

        >>> _ = env.set_state_backend(EmbeddedRocksDBStateBackend())
        """
        require_instance("set_state_backend", state_backend, StateBackend)
        self._configuration.add_all(state_backend.settings)
        return self

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Run each operator in a vertex of its own.

        >>> env.disable_operator_chaining().is_chaining_enabled()
        False
        """
        self._configuration.set(options.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Return True if operators are chained. This is the default.

        >>> env.is_chaining_enabled()
        True
        """
        return self._configuration.get(options.OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Return True if operators with a different max parallelism are chained. This is the default.

        >>> env.is_chaining_of_operators_with_different_max_parallelism_enabled()
        True
        """
        return self._configuration.get(options.CHAIN_DIFFERENT_MAX_PARALLELISM)

    def register_slot_sharing_group(
        self, slot_sharing_group: SlotSharingGroup
    ) -> StreamExecutionEnvironment:
        """Accepted without effect: Spark gives all slots the same resources.

        Args:
            slot_sharing_group: The group.

        >>> _ = env.register_slot_sharing_group(SlotSharingGroup("heavy"))
        """
        require_instance("register_slot_sharing_group", slot_sharing_group, SlotSharingGroup)
        return self

    # -- checkpoints and restarts --------------------------------------------------------------

    def enable_checkpointing(
        self, interval: int, mode: CheckpointingMode | None = None
    ) -> StreamExecutionEnvironment:
        """Take checkpoints at an interval.

        Args:
            interval: Milliseconds, at least 10.
            mode: The checkpointing mode. The default is EXACTLY_ONCE.

        >>> env.enable_checkpointing(10_000).get_checkpoint_interval()
        10000
        """
        config = self.get_checkpoint_config().set_checkpoint_interval(interval)
        if mode is not None:
            config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Return the checkpoint settings.

        >>> env.get_checkpoint_config().set_checkpoint_interval(1000).is_checkpointing_enabled()
        True
        """
        return CheckpointConfig(self._configuration)

    def get_checkpoint_interval(self) -> int:
        """Return the interval of checkpoints in milliseconds, or -1 if there are none.

        >>> env.get_checkpoint_interval()
        -1
        """
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the checkpointing mode.

        >>> env.get_checkpointing_mode().name
        'EXACTLY_ONCE'
        """
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Return the checkpointing mode, by its newer name.

        >>> env.get_checkpointing_consistency_mode().name
        'EXACTLY_ONCE'
        """
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return True if barriers of checkpoints may overtake records.

        >>> env.is_unaligned_checkpoints_enabled()
        False
        """
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return the setting for forced unaligned checkpoints. It has no effect.

        >>> env.is_force_unaligned_checkpoints()
        False
        """
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """Accepted without effect: every state backend of Firesteel writes a changelog.

        Args:
            enabled: The setting.

        >>> env.enable_changelog_state_backend(True).is_changelog_state_backend_enabled()
        True
        """
        self._configuration.set(checkpoint_options.CHANGELOG_STATE_BACKEND, enabled)
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """Return the setting for the changelog, or None if there is none.

        >>> env.is_changelog_state_backend_enabled() is None
        True
        """
        return self._configuration.get_optional(checkpoint_options.CHANGELOG_STATE_BACKEND)

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Set the directory for savepoints without a directory of their own.

        Args:
            directory: The directory or the path of an object store.

        >>> env.set_default_savepoint_directory("/savepoints").get_default_savepoint_directory()
        '/savepoints'
        """
        self._configuration.set(checkpoint_options.SAVEPOINT_DIR, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Return the directory for savepoints, or None.

        >>> env.get_default_savepoint_directory() is None
        True
        """
        return self._configuration.get(checkpoint_options.SAVEPOINT_DIR)

    def set_restart_strategy(
        self, restart_strategy_configuration: RestartStrategyConfiguration
    ) -> StreamExecutionEnvironment:
        """Set the restart strategy of jobs that fail. PyFlink 1 has this method, PyFlink 2 only the keys.

        Args:
            restart_strategy_configuration: A result of RestartStrategies.

        >>> _ = env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 10_000))
        """
        require_instance(
            "set_restart_strategy", restart_strategy_configuration, RestartStrategyConfiguration
        )
        settings = restart_strategy_configuration.to_settings()
        self._configuration.add_all(Configuration.from_dict(settings))
        return self

    # -- files that travel with the job --------------------------------------------------------

    def add_python_file(self, file_path: str) -> None:
        """Put a file on the Python path of the tasks.

        Args:
            file_path: A module, a directory, or a zip file.

        >>> env.add_python_file("helpers.py")
        """
        shipped_files.add_python_file(self._configuration, file_path)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack a zip file in the working directory of the tasks.

        Args:
            archive_path: The zip file.
            target_dir: The name of the directory. Without it the directory has the archive's name.

        >>> env.add_python_archive("models.zip", "models")
        """
        shipped_files.add_python_archive(self._configuration, archive_path, target_dir)

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """Install the packages of a requirements file where the tasks run.

        Args:
            requirements_file_path: The file.
            requirements_cache_dir: A directory with packages, to install without a network.

        >>> env.set_python_requirements("requirements.txt", "wheels")
        """
        shipped_files.set_requirements(
            self._configuration, requirements_file_path, requirements_cache_dir
        )

    def set_python_executable(self, python_exec: str) -> None:
        """Set the interpreter that runs the tasks.

        Args:
            python_exec: Its path on the machines of the tasks.

        >>> env.set_python_executable("/opt/python/bin/python3")
        """
        self._configuration.set(options.PYTHON_EXECUTABLE, python_exec)

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Bring a file or directory to all tasks.

        Functions find it with ``runtime_context.get_distributed_cache().get_file(name)``. In PyFlink only
        Java functions can read it.

        Args:
            file_path: The file or directory.
            name: The name for ``get_file``.
            executable: Make the file executable.

        >>> env.register_cached_file("model.bin", "model")
        """
        shipped_files.register_cached_file(
            self._configuration, file_path, name, executable=executable
        )

    # -- sources -------------------------------------------------------------------------------

    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy | None,
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """Make a stream of the records of a source.

        Args:
            source: The source.
            watermark_strategy: Gives records timestamps and the stream watermarks. None gives none.
            source_name: The name of the operator.
            type_info: The type of the records. Without it the source determines it.

        >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
        >>> numbers = env.from_source(
        ...     NumberSequenceSource(1, 3), WatermarkStrategy.no_watermarks(), "numbers"
        ... )
        >>> list(numbers.execute_and_collect())
        [1, 2, 3]
        """
        require_instance("from_source", source, Source)
        _check_strategy("from_source", watermark_strategy)
        value_type = as_type(
            "from_source", source.get_produced_type() if type_info is None else type_info
        )
        if watermark_strategy is not None:
            check_timestamp_assigner("from_source", watermark_strategy, value_type)
        # Sources of Firesteel declare their type correctly.
        ours = type_info is None and type(source).__module__.startswith("firesteel.")
        spec = SourceSpec(source, _copy_of(watermark_strategy), checked=not ours)
        return self._source(source_name, spec, value_type)

    def from_collection(
        self, collection: Iterable[Any], type_info: TypeInformation | None = None
    ) -> DataStream:
        """Make a bounded stream of some elements. One subtask reads them.

        Args:
            collection: The elements.
            type_info: Their type. The elements are checked and converted. Without it they are arbitrary
                Python objects.

        >>> list(env.from_collection([1, 2, 3], Types.INT()).execute_and_collect())
        [1, 2, 3]
        """
        if not isinstance(collection, Iterable):
            raise ProgramTypeError(
                f"from_collection expects an iterable, but got {shorten(collection)} of type "
                f"{type(collection).__qualname__}."
            )
        value_type = as_type("from_collection", type_info)
        if type_info is not None:
            collection = fit_elements(collection, value_type)
        source = CollectionSource(collection, value_type)
        stream = self._source("Collection Source", SourceSpec(source), value_type)
        return stream.force_non_parallel()

    @public_evolving
    def from_sequence(self, start: int, end: int) -> DataStream:
        """Make a bounded stream of whole numbers. Not in PyFlink.

        Args:
            start: The first number.
            end: The last number.

        >>> list(env.from_sequence(1, 3).execute_and_collect())
        [1, 2, 3]
        """
        source = SourceSpec(NumberSequenceSource(start, end))
        return self._source("Sequence Source", source, Types.LONG())

    @public_evolving
    def socket_text_stream(
        self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0
    ) -> DataStream:
        """Make a stream of the lines that a server sends. Lines are lost if the job fails. Not in PyFlink.

        Args:
            hostname: The host of the server.
            port: Its port.
            delimiter: The text that ends a line.
            max_retry: If the server closes the connection, connect again this many times less one,
                half a second apart, as Flink counts. -1 tries forever.

        >>> lines = env.socket_text_stream("localhost", 9999)
        >>> lines.get_type()
        String
        """
        source = SourceSpec(SocketTextStreamSource(hostname, port, delimiter, max_retry))
        stream = self._source("Socket Stream", source, Types.STRING())
        return stream.force_non_parallel()

    @public_evolving
    def from_dataframe(
        self,
        data_frame: Any,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "DataFrame",
    ) -> DataStream:
        """Make a stream of the rows of a Spark DataFrame, batch or streaming. Not in PyFlink.

        Args:
            data_frame: The DataFrame. A batch DataFrame needs a batch job.
            watermark_strategy: Gives records timestamps and the stream watermarks.
            source_name: The name of the operator.

        >>> _ = env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
        >>> frame = env.get_spark_session().createDataFrame([("a", 1), ("b", 2)], ["word", "n"])
        >>> rows = env.from_dataframe(frame).filter(lambda row: row["n"] > 1)
        >>> list(rows.execute_and_collect())
        [Row(word='b', n=2)]
        """
        if not all(hasattr(data_frame, name) for name in ("columns", "schema", "isStreaming")):
            raise ProgramTypeError(
                f"from_dataframe expects a Spark DataFrame, but got {shorten(data_frame)} of type "
                f"{type(data_frame).__qualname__}."
            )
        _check_strategy("from_dataframe", watermark_strategy)
        value_type = data_frame_type(data_frame.schema)
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
        """Return the stream of a source. It is part of the program once an operator reads it, as in Flink."""
        transformation = Transformation(
            name=name, spec=spec, output_type=value_type, driver_object=driver_object
        )
        return DataStream(self, (Origin(transformation),), value_type)

    # -- running -------------------------------------------------------------------------------

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run everything that was added since the last job, and wait for its end.

        Args:
            job_name: The name of the job.

        Returns:
            The result of the job: its id, runtime and accumulators.

        Raises:
            JobExecutionError: The job failed. A UserFunctionError names the function and the line.

        >>> sink = env.from_collection(["a"]).print()
        >>> result = env.execute("letters")
        a
        >>> result.get_net_runtime() >= 0
        True
        """
        job = self.program.launch(self._compile(job_name))
        if self.program.is_detached:
            return DetachedJobExecutionResult(job.job_id)
        try:
            result = job.result().result()
        except KeyboardInterrupt:
            job.interrupt()
            if program_process.is_interactive():
                raise
            # A script ends as the shell expects, without a traceback of Firesteel.
            raise SystemExit(_INTERRUPTED) from None
        self.program.note_end(result)
        return result

    def execute_async(self, job_name: str = "Flink Streaming Job") -> JobClient:
        """Run everything that was added since the last job, and return at once.

        Args:
            job_name: The name of the job.

        Returns:
            The client of the job, to watch and cancel it.

        >>> sink = env.from_collection(["a"]).print()
        >>> client = env.execute_async()
        a
        >>> client.get_job_status().result().name
        'FINISHED'
        """
        return JobClient(self.program.launch(self._compile(job_name)))

    @public_evolving
    def get_spark_session(self) -> Any:
        """Return the ``pyspark.sql.SparkSession`` of the jobs, to make DataFrames with. Not in PyFlink.

        If there is none, it is started with a slot per core, or more if the parallelism needs it.

        >>> env.get_spark_session().range(3).count()
        3
        """
        from firesteel.spark.session import user_session

        return user_session(self.get_parallelism(), self._configuration)

    def get_execution_plan(self) -> str:
        """Return the plan as JSON, in the form of Flink. No job runs.

        >>> sink = env.from_collection(["a"]).print()
        >>> import json
        >>> [node["type"] for node in json.loads(env.get_execution_plan())["nodes"]]
        ['Source: Collection Source', 'Sink: Print to Std. Out']
        """
        return plan_json(self._compile().stream_graph)

    @public_evolving
    def explain(self, graph: str = "job", style: str = "text") -> str:
        """Draw a graph of the program so far. No job runs. Not in PyFlink.

        Args:
            graph: "stream" for the operators, "job" for the chains, "execution" for the slots.
            style: "text", "mermaid" or "dot".

        >>> sink = env.from_collection(["a"]).map(str.upper).print()
        >>> print(env.explain("stream", "mermaid"))
        %% StreamGraph of 'Flink Streaming Job'
        flowchart LR
            n1["Source: Collection Source<br/>parallelism 1/1, group default"]
            n2["Map<br/>parallelism 1/128, group default"]
        ...
        """
        return self._compile().draw(graph, style)

    def close(self) -> None:
        """Drop everything that was added and has not run.

        >>> sink = env.from_collection(["a"]).print()
        >>> env.close()
        """
        self.program.clear()

    def _compile(self, job_name: str | None = None, *more: Transformation) -> CompiledJob:
        return self.program.compile(self.get_parallelism(), job_name, *more)

    # -- never supported -----------------------------------------------------------------------

    def add_source(
        self,
        source_func: Any,
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """Read with a source of PyFlink that is a SourceFunction there, such as RMQSource.

        Args:
            source_func: The source. For others use ``from_source``.
            source_name: The name of the operator.
            type_info: The type of the records. Without it the source determines it.

        Raises:
            NeverSupportedError: The source is a Java object, or belongs to ``from_source``.

        >>> env.add_source(None)
        Traceback (most recent call last):
        ...
        firesteel.errors.NeverSupportedError: ...derive from Source and call from_source()...
        """
        if isinstance(source_func, Source) and source_func.is_source_function:
            return self.from_source(source_func, None, source_name, type_info)
        raise NeverSupportedError(
            "StreamExecutionEnvironment.add_source",
            "a SourceFunction is a Java object; derive from Source and call from_source()",
        )

    def create_input(
        self, input_format: InputFormat, type_info: TypeInformation | None = None
    ) -> DataStream:
        """Make a bounded stream of the records of an input format.

        Args:
            input_format: The format, such as ``AvroInputFormat``.
            type_info: The type of the records. Without it the format determines it.

        >>> from firesteel.common.io import InputFormat
        >>> from firesteel.datastream.connectors.number_seq import NumberSequenceSource
        >>> class Numbers(InputFormat):
        ...     def to_source(self):
        ...         return NumberSequenceSource(1, 3)
        >>> list(env.create_input(Numbers()).execute_and_collect())
        [1, 2, 3]
        """
        require_instance("create_input", input_format, InputFormat)
        return self.from_source(input_format.to_source(), None, "Custom Source", type_info)

    def add_jars(self, *jars_path: str) -> NoReturn:
        """Not supported: Firesteel has no JVM to load a jar.

        Raises:
            NeverSupportedError: Always.

        >>> env.add_jars("file:///connector.jar")
        Traceback (most recent call last):
        ...
        firesteel.errors.NeverSupportedError: ...has no JVM to load Java classes...
        """
        raise NeverSupportedError("StreamExecutionEnvironment.add_jars", _JVM)

    def add_classpaths(self, *classpaths: str) -> NoReturn:
        """Not supported: Firesteel has no JVM to load a class.

        Raises:
            NeverSupportedError: Always.

        >>> env.add_classpaths("file:///classes")
        Traceback (most recent call last):
        ...
        firesteel.errors.NeverSupportedError: ...has no JVM to load Java classes...
        """
        raise NeverSupportedError("StreamExecutionEnvironment.add_classpaths", _JVM)


def _copy_of(strategy: WatermarkStrategy | None) -> WatermarkStrategy | None:
    """Return a copy, because a program may change the strategy afterwards, as in PyFlink."""
    return None if strategy is None else replace(strategy)


def _check_strategy(operation: str, strategy: WatermarkStrategy | None) -> None:
    if strategy is None:
        return
    require_instance(operation, strategy, WatermarkStrategy)
    if operation != "from_source":
        check_not_aligned(operation, strategy)
