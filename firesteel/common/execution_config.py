"""The settings of a program's execution, as methods."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from firesteel.common.configuration import Configuration
from firesteel.config import checkpoint_options, options
from firesteel.config.check import note_without_effect
from firesteel.config.option import Option
from firesteel.errors import NeverSupportedError

__all__ = ["ExecutionConfig"]

_MILLISECOND = timedelta(milliseconds=1)
_JVM_SERIALIZERS = "it chooses between serializers of the JVM; records here are Python objects."


class ExecutionConfig:
    """A view of a Configuration: what is set here can be read there, and the other way round."""

    PARALLELISM_DEFAULT: Final = -1
    PARALLELISM_UNKNOWN: Final = -2

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def to_configuration(self) -> Configuration:
        """The configuration behind this view."""
        return self._configuration

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set the parallelism of operators that set none; PARALLELISM_DEFAULT takes it back."""
        if parallelism == self.PARALLELISM_DEFAULT:
            self._configuration.remove_config(options.DEFAULT_PARALLELISM.key)
            return self
        if parallelism < 1:
            raise ValueError(f"The parallelism must be at least 1, got {parallelism}.")
        return self._set(options.DEFAULT_PARALLELISM, parallelism)

    def get_parallelism(self) -> int:
        """The parallelism that was set, or PARALLELISM_DEFAULT."""
        value = self._configuration.get_optional(options.DEFAULT_PARALLELISM)
        return self.PARALLELISM_DEFAULT if value is None else value

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        if not (max_parallelism == -1 or 0 < max_parallelism <= 32768):
            raise ValueError(
                f"The maximum parallelism is between 1 and 32768, got {max_parallelism}."
            )
        return self._set(options.MAX_PARALLELISM, max_parallelism)

    def get_max_parallelism(self) -> int:
        return self._configuration.get(options.MAX_PARALLELISM)

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Set the interval of periodic watermarks in milliseconds."""
        return self._set_millis(options.AUTO_WATERMARK_INTERVAL, interval)

    def get_auto_watermark_interval(self) -> int:
        return self._millis(options.AUTO_WATERMARK_INTERVAL)

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        return self._set_millis(options.LATENCY_INTERVAL, interval)

    def get_latency_tracking_interval(self) -> int:
        return self._millis(options.LATENCY_INTERVAL)

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        return self._set_millis(options.CANCELLATION_INTERVAL, interval)

    def get_task_cancellation_interval(self) -> int:
        return self._millis(options.CANCELLATION_INTERVAL)

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        return self._set_millis(options.CANCELLATION_TIMEOUT, timeout)

    def get_task_cancellation_timeout(self) -> int:
        return self._millis(options.CANCELLATION_TIMEOUT)

    def enable_object_reuse(self) -> ExecutionConfig:
        return self._set(options.OBJECT_REUSE, True)

    def disable_object_reuse(self) -> ExecutionConfig:
        return self._set(options.OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        return self._configuration.get(options.OBJECT_REUSE)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        return self._set(options.AUTO_GENERATE_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Make it an error if an operator has no uid."""
        return self._set(options.AUTO_GENERATE_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        return self._configuration.get(options.AUTO_GENERATE_UIDS)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        return self._set(checkpoint_options.SNAPSHOT_COMPRESSION, use_snapshot_compression)

    def is_use_snapshot_compression(self) -> bool:
        return self._configuration.get(checkpoint_options.SNAPSHOT_COMPRESSION)

    def set_global_job_parameters(
        self, global_job_parameters_dict: Mapping[str, Any]
    ) -> ExecutionConfig:
        """Set parameters that every function can read."""
        parameters = {str(key): str(value) for key, value in global_job_parameters_dict.items()}
        return self._set(options.GLOBAL_JOB_PARAMETERS, parameters)

    def get_global_job_parameters(self) -> dict[str, str]:
        parameters = self._configuration.get(options.GLOBAL_JOB_PARAMETERS)
        return dict(parameters)

    # Java closures and serializers: what is Flink's default may be said, the rest is an error.

    def enable_closure_cleaner(self) -> ExecutionConfig:
        return self._set(options.CLOSURE_CLEANER, "RECURSIVE")

    def disable_closure_cleaner(self) -> ExecutionConfig:
        return self._set(options.CLOSURE_CLEANER, "NONE")

    def is_closure_cleaner_enabled(self) -> bool:
        return self._configuration.get(options.CLOSURE_CLEANER) != "NONE"

    def enable_generic_types(self) -> ExecutionConfig:
        return self._set(options.GENERIC_TYPES, True)

    def disable_generic_types(self) -> ExecutionConfig:
        raise NeverSupportedError("ExecutionConfig.disable_generic_types", _JVM_SERIALIZERS)

    def has_generic_types_disabled(self) -> bool:
        return not self._configuration.get(options.GENERIC_TYPES)

    def enable_force_kryo(self) -> ExecutionConfig:
        raise NeverSupportedError("ExecutionConfig.enable_force_kryo", _JVM_SERIALIZERS)

    def disable_force_kryo(self) -> ExecutionConfig:
        return self

    def is_force_kryo_enabled(self) -> bool:
        return False

    def enable_force_avro(self) -> ExecutionConfig:
        raise NeverSupportedError("ExecutionConfig.enable_force_avro", _JVM_SERIALIZERS)

    def disable_force_avro(self) -> ExecutionConfig:
        return self

    def is_force_avro_enabled(self) -> bool:
        return False

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        return []

    def get_registered_pojo_types(self) -> list[str]:
        return []

    def _set(self, option: Option[Any], value: Any) -> ExecutionConfig:
        self._configuration.set(option, value)
        # As for a key in a file: what has no effect is accepted, and said.
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
