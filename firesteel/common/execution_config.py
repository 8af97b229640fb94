"""ExecutionConfig, the settings of a job's execution as methods."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from firesteel.common.configuration import Configuration
from firesteel.config import checkpoint_options, options
from firesteel.config.check import note_without_effect
from firesteel.config.option import Option
from firesteel.errors import NeverSupportedError
from firesteel.stability import public_evolving

__all__ = ["ExecutionConfig"]

_MILLISECOND = timedelta(milliseconds=1)
_JVM_SERIALIZERS = "it selects a serializer of the JVM, and Firesteel's records are Python objects."


class ExecutionConfig:
    """Settings of a job's execution, from ``env.get_config()``.

    It is a view of the environment's Configuration: a change through one is visible through the
    other. Setters return the ExecutionConfig, so calls can be chained.

    >>> config = env.get_config().set_parallelism(2).set_auto_watermark_interval(100)
    >>> config.get_parallelism(), config.get_auto_watermark_interval()
    (2, 100)
    >>> config.to_configuration().get_string("pipeline.auto-watermark-interval", "")
    '100 ms'
    """

    PARALLELISM_DEFAULT: Final = -1
    PARALLELISM_UNKNOWN: Final = -2

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    @public_evolving
    def to_configuration(self) -> Configuration:
        """Return the configuration of which this object is a view. Not in PyFlink.

        >>> ExecutionConfig().set_parallelism(2).to_configuration()
        Configuration({'parallelism.default': '2'})
        """
        return self._configuration

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set the parallelism of operators that do not set their own.

        Args:
            parallelism: The number of subtasks, or ``ExecutionConfig.PARALLELISM_DEFAULT`` to unset
                it.

        Raises:
            ValueError: The parallelism is less than 1.

        >>> config = env.get_config().set_parallelism(4)
        >>> env.get_parallelism()
        4
        """
        if parallelism == self.PARALLELISM_DEFAULT:
            self._configuration.remove_config(options.DEFAULT_PARALLELISM.key)
            return self
        if parallelism < 1:
            raise ValueError(f"The parallelism must be at least 1, got {parallelism}.")
        return self._set(options.DEFAULT_PARALLELISM, parallelism)

    def get_parallelism(self) -> int:
        """Return the parallelism, or ``ExecutionConfig.PARALLELISM_DEFAULT`` if it is not set.

        >>> ExecutionConfig().get_parallelism()
        -1
        """
        value = self._configuration.get_optional(options.DEFAULT_PARALLELISM)
        return self.PARALLELISM_DEFAULT if value is None else value

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Set the number of key groups, which limits the parallelism of keyed operators.

        Args:
            max_parallelism: A number from 1 to 32768, or -1 to let Firesteel choose.

        Raises:
            ValueError: The number is out of range.

        >>> env.get_config().set_max_parallelism(1024).get_max_parallelism()
        1024
        """
        if not (max_parallelism == -1 or 0 < max_parallelism <= 32768):
            raise ValueError(
                f"The maximum parallelism must be between 1 and 32768, got {max_parallelism}."
            )
        return self._set(options.MAX_PARALLELISM, max_parallelism)

    def get_max_parallelism(self) -> int:
        """Return the number of key groups, or -1 if Firesteel chooses it.

        >>> env.get_config().get_max_parallelism()
        -1
        """
        return self._configuration.get(options.MAX_PARALLELISM)

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Set the interval between two periodic watermarks.

        Args:
            interval: Milliseconds. 0 turns periodic watermarks off.

        >>> env.get_config().set_auto_watermark_interval(500).get_auto_watermark_interval()
        500
        """
        return self._set_millis(options.AUTO_WATERMARK_INTERVAL, interval)

    def get_auto_watermark_interval(self) -> int:
        """Return the interval between two periodic watermarks, in milliseconds.

        >>> env.get_config().get_auto_watermark_interval()
        200
        """
        return self._millis(options.AUTO_WATERMARK_INTERVAL)

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Set the interval of latency markers. The setting has no effect yet.

        Args:
            interval: Milliseconds.

        >>> env.get_config().set_latency_tracking_interval(1000).get_latency_tracking_interval()
        1000
        """
        return self._set_millis(options.LATENCY_INTERVAL, interval)

    def get_latency_tracking_interval(self) -> int:
        """Return the interval of latency markers, in milliseconds.

        >>> env.get_config().get_latency_tracking_interval()
        0
        """
        return self._millis(options.LATENCY_INTERVAL)

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Set the interval between two attempts to cancel a task. The setting has no effect yet.

        Args:
            interval: Milliseconds.

        >>> env.get_config().set_task_cancellation_interval(5000).get_task_cancellation_interval()
        5000
        """
        return self._set_millis(options.CANCELLATION_INTERVAL, interval)

    def get_task_cancellation_interval(self) -> int:
        """Return the interval between two attempts to cancel a task, in milliseconds.

        >>> env.get_config().get_task_cancellation_interval()
        30000
        """
        return self._millis(options.CANCELLATION_INTERVAL)

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Set the time after which a canceled task is ended by force.

        Args:
            timeout: Milliseconds. 0 waits without a limit.

        >>> env.get_config().set_task_cancellation_timeout(60_000).get_task_cancellation_timeout()
        60000
        """
        return self._set_millis(options.CANCELLATION_TIMEOUT, timeout)

    def get_task_cancellation_timeout(self) -> int:
        """Return the time after which a canceled task is ended by force, in milliseconds.

        >>> env.get_config().get_task_cancellation_timeout()
        10000
        """
        return self._millis(options.CANCELLATION_TIMEOUT)

    def enable_object_reuse(self) -> ExecutionConfig:
        """Allow operators to pass on the same object.

        Firesteel never copies records between chained operators, so this changes nothing.

        >>> env.get_config().enable_object_reuse().is_object_reuse_enabled()
        True
        """
        return self._set(options.OBJECT_REUSE, True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Return to the default of ``enable_object_reuse``.

        >>> env.get_config().disable_object_reuse().is_object_reuse_enabled()
        False
        """
        return self._set(options.OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        """Return True if object reuse is enabled.

        >>> env.get_config().is_object_reuse_enabled()
        False
        """
        return self._configuration.get(options.OBJECT_REUSE)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Let operators without a uid get one from their place in the job. This is the default.

        >>> env.get_config().enable_auto_generated_uids().has_auto_generated_uids_enabled()
        True
        """
        return self._set(options.AUTO_GENERATE_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Require ``uid()`` on each operator, so that savepoints fit a changed program.

        >>> config = env.get_config().disable_auto_generated_uids()
        >>> sink = env.from_collection([1, 2]).map(lambda number: number + 1).print()
        >>> env.execute()
        Traceback (most recent call last):
        firesteel.errors.InvalidProgramError: ...
        """
        return self._set(options.AUTO_GENERATE_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Return True if operators without a uid get one automatically.

        >>> env.get_config().has_auto_generated_uids_enabled()
        True
        """
        return self._configuration.get(options.AUTO_GENERATE_UIDS)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Choose if the files of checkpoints and savepoints are compressed.

        Args:
            use_snapshot_compression: True compresses them.

        >>> env.get_config().set_use_snapshot_compression(True).is_use_snapshot_compression()
        True
        """
        return self._set(checkpoint_options.SNAPSHOT_COMPRESSION, use_snapshot_compression)

    def is_use_snapshot_compression(self) -> bool:
        """Return True if the files of checkpoints and savepoints are compressed.

        >>> env.get_config().is_use_snapshot_compression()
        False
        """
        return self._configuration.get(checkpoint_options.SNAPSHOT_COMPRESSION)

    def set_global_job_parameters(
        self, global_job_parameters_dict: Mapping[str, Any]
    ) -> ExecutionConfig:
        """Set parameters that each function can read through its RuntimeContext.

        Args:
            global_job_parameters_dict: Names and values. Values become text.

        >>> class Greet(MapFunction):
        ...     def open(self, runtime_context):
        ...         self.greeting = runtime_context.get_job_parameter("greeting", "Hello")
        ...     def map(self, name):
        ...         return f"{self.greeting} {name}"
        >>> config = env.get_config().set_global_job_parameters({"greeting": "Welcome"})
        >>> list(env.from_collection(["Ada"]).map(Greet()).execute_and_collect())
        ['Welcome Ada']
        """
        parameters = {str(key): str(value) for key, value in global_job_parameters_dict.items()}
        return self._set(options.GLOBAL_JOB_PARAMETERS, parameters)

    def get_global_job_parameters(self) -> dict[str, str]:
        """Return the parameters of ``set_global_job_parameters``.

        >>> env.get_config().set_global_job_parameters({"year": 2024}).get_global_job_parameters()
        {'year': '2024'}
        """
        parameters = self._configuration.get(options.GLOBAL_JOB_PARAMETERS)
        return dict(parameters)

    # Java closures and serializers: Flink's defaults are accepted, other choices are errors.

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Set the closure cleaner of Java functions. It has no effect on Python functions.

        >>> env.get_config().enable_closure_cleaner().is_closure_cleaner_enabled()
        True
        """
        return self._set(options.CLOSURE_CLEANER, "RECURSIVE")

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Unset the closure cleaner of Java functions. It has no effect on Python functions.

        >>> env.get_config().disable_closure_cleaner().is_closure_cleaner_enabled()
        False
        """
        return self._set(options.CLOSURE_CLEANER, "NONE")

    def is_closure_cleaner_enabled(self) -> bool:
        """Return True if the closure cleaner is set, which is the default.

        >>> env.get_config().is_closure_cleaner_enabled()
        True
        """
        return self._configuration.get(options.CLOSURE_CLEANER) != "NONE"

    def enable_generic_types(self) -> ExecutionConfig:
        """Allow records of any type. This is the default and cannot be changed.

        >>> env.get_config().enable_generic_types().has_generic_types_disabled()
        False
        """
        return self._set(options.GENERIC_TYPES, True)

    def disable_generic_types(self) -> ExecutionConfig:
        """Raise NeverSupportedError: Firesteel has no serializers of the JVM to forbid.

        >>> env.get_config().disable_generic_types()
        Traceback (most recent call last):
        firesteel.errors.NeverSupportedError: ExecutionConfig.disable_generic_types ...
        """
        raise NeverSupportedError("ExecutionConfig.disable_generic_types", _JVM_SERIALIZERS)

    def has_generic_types_disabled(self) -> bool:
        """Return False, because records may have any type.

        >>> env.get_config().has_generic_types_disabled()
        False
        """
        return not self._configuration.get(options.GENERIC_TYPES)

    def enable_force_kryo(self) -> ExecutionConfig:
        """Raise NeverSupportedError: Firesteel has no serializers of the JVM to choose from.

        >>> env.get_config().enable_force_kryo()
        Traceback (most recent call last):
        firesteel.errors.NeverSupportedError: ExecutionConfig.enable_force_kryo ...
        """
        raise NeverSupportedError("ExecutionConfig.enable_force_kryo", _JVM_SERIALIZERS)

    def disable_force_kryo(self) -> ExecutionConfig:
        """Do nothing: Kryo is never used.

        >>> env.get_config().disable_force_kryo().is_force_kryo_enabled()
        False
        """
        return self

    def is_force_kryo_enabled(self) -> bool:
        """Return False, because Kryo is never used.

        >>> env.get_config().is_force_kryo_enabled()
        False
        """
        return False

    def enable_force_avro(self) -> ExecutionConfig:
        """Raise NeverSupportedError: Firesteel has no serializers of the JVM to choose from.

        >>> env.get_config().enable_force_avro()
        Traceback (most recent call last):
        firesteel.errors.NeverSupportedError: ExecutionConfig.enable_force_avro ...
        """
        raise NeverSupportedError("ExecutionConfig.enable_force_avro", _JVM_SERIALIZERS)

    def disable_force_avro(self) -> ExecutionConfig:
        """Do nothing: Avro is never used for records between operators.

        >>> env.get_config().disable_force_avro().is_force_avro_enabled()
        False
        """
        return self

    def is_force_avro_enabled(self) -> bool:
        """Return False, because Avro is never used for records between operators.

        >>> env.get_config().is_force_avro_enabled()
        False
        """
        return False

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Return an empty dict, because there are no Kryo serializers.

        >>> env.get_config().get_default_kryo_serializer_classes()
        {}
        """
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Return an empty list, because there are no Kryo types.

        >>> env.get_config().get_registered_kryo_types()
        []
        """
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Return an empty list, because there are no Java types.

        >>> env.get_config().get_registered_pojo_types()
        []
        """
        return []

    def _set(self, option: Option[Any], value: Any) -> ExecutionConfig:
        self._configuration.set(option, value)
        # As for a key in a file: a setting without effect is accepted and logged.
        note_without_effect(option)
        return self

    def _set_millis(self, option: Option[timedelta], millis: int) -> ExecutionConfig:
        if millis < 0:
            raise ValueError(f"{option.key} must not be negative, got {millis} ms.")
        return self._set(option, timedelta(milliseconds=millis))

    def _millis(self, option: Option[timedelta]) -> int:
        return self._configuration.get(option) // _MILLISECOND

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExecutionConfig) and self._configuration == other._configuration

    def __hash__(self) -> int:
        return hash(self._configuration)
