"""Classifies keys of settings as used, known, unknown or misspelled."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from firesteel.config.option import Option
from firesteel.config.options import ALL_OPTIONS
from firesteel.errors import ConfigurationError

# Keys with these prefixes are Flink's, including keys with a part that the user chooses.
FLINK_PREFIXES: Final = (
    "akka.", "blob.", "classloader.", "client.", "cluster.", "compiler.", "containerized.",
    "deployment.", "env.", "execution.", "external-resource", "fs.", "heartbeat.",
    "high-availability", "historyserver.", "io.", "job-event.", "job-result-store.", "jobmanager.",
    "jobstore.", "kubernetes.", "metrics.", "net.", "parallelism.", "pekko.", "pipeline.",
    "plugin.", "process.", "python.", "queryable-state.", "resourcemanager.", "rest.",
    "restart-strategy", "s3.", "scheduler", "security.", "slot.", "slotmanager.", "sql-client.",
    "sql-gateway.", "state.", "strategy.", "table.", "task.", "taskmanager.", "tmp.", "user.",
    "web.", "yarn.", "zookeeper.", "$internal.",
)  # fmt: skip

_NAMES = """
    blob.server.port blob.storage.directory classloader.check-leaked-classloader
    classloader.parent-first-patterns.additional classloader.resolve-order client.timeout
    cluster.evenly-spread-out-slots cluster.id cluster.io-pool.size env.java.home env.java.opts.all
    env.java.opts.jobmanager env.java.opts.taskmanager env.log.dir env.log.level env.log.max
    env.pid.dir execution.batch-shuffle-mode execution.batch.adaptive.auto-parallelism.enabled
    execution.batch.speculative.enabled execution.checkpointing.async.enabled
    execution.checkpointing.cleaner.parallel-mode
    execution.checkpointing.create-subdir execution.checkpointing.file-merging.enabled
    execution.checkpointing.local-backup.dirs
    execution.checkpointing.unaligned.interruptible-timers.enabled
    execution.checkpointing.unaligned.max-subtasks-per-channel-state-file
    execution.checkpointing.write-buffer-size execution.cluster.detached
    execution.job-status-changed-listeners execution.shutdown-on-application-finish
    execution.sorted-inputs.enabled
    execution.sorted-inputs.memory execution.submit-failed-job-on-application-error
    fs.default-scheme fs.overwrite-files fs.output.always-create-directory heartbeat.interval
    heartbeat.rpc-failure-threshold high-availability.jobmanager.port
    io.tmp.dirs jobmanager.adaptive-scheduler.max-parallelism
    jobmanager.adaptive-scheduler.submission.resource-wait-timeout
    jobmanager.bind-host jobmanager.execution.failover-strategy jobmanager.memory.flink.size
    jobmanager.memory.heap.size jobmanager.memory.jvm-metaspace.size
    jobmanager.memory.jvm-overhead.fraction jobmanager.memory.jvm-overhead.max
    jobmanager.memory.jvm-overhead.min jobmanager.memory.off-heap.size
    jobmanager.memory.process.size jobmanager.rpc.address jobmanager.rpc.port jobmanager.scheduler
    kubernetes.cluster-id kubernetes.container.image.ref kubernetes.namespace
    kubernetes.service-account metrics.internal.query-service.port metrics.job.status.enable
    metrics.latency.granularity metrics.latency.history-size metrics.scope.delimiter
    metrics.scope.jm metrics.scope.jm-job metrics.scope.operator metrics.scope.task
    metrics.scope.tm metrics.scope.tm-job metrics.system-resource
    pipeline.auto-type-registration
    pipeline.classpaths pipeline.default-kryo-serializers
    pipeline.force-avro pipeline.force-kryo pipeline.jobvertex-parallelism-overrides
    pipeline.registered-kryo-types pipeline.registered-pojo-types pipeline.serialization-config
    pipeline.vertex-description-mode pipeline.vertex-name-include-index-prefix
    pipeline.watermark-alignment.allow-unaligned-source-splits python.client.executable
    python.execution-mode python.fn-execution.arrow.batch.size
    python.fn-execution.memory.managed python.map-state.iterate-response-batch-size
    python.map-state.read-cache-size python.map-state.write-cache-size
    python.operator-chaining.enabled
    python.pythonpath python.state.cache-size python.systemenv.enabled queryable-state.enable
    rest.client.max-content-length
    rest.connection-timeout rest.flamegraph.enabled rest.idleness-timeout rest.retry.delay
    rest.retry.max-attempts rest.server.max-content-length rest.profiling.enabled
    scheduler-mode security.kerberos.login.keytab security.kerberos.login.principal
    security.ssl.internal.enabled slot.idle.timeout
    slotmanager.max-total-resource.cpu slotmanager.number-of-slots.max
    slotmanager.redundant-taskmanager-num state.backend.changelog.max-failures-allowed
    state.backend.changelog.storage state.backend.rocksdb.log.level
    state.backend.rocksdb.memory.high-prio-pool-ratio state.backend.rocksdb.memory.managed
    state.backend.rocksdb.memory.write-buffer-ratio state.backend.rocksdb.options-factory
    state.backend.rocksdb.timer-service.factory
    state.latency-track.history-size state.latency-track.sample-interval
    state.latency-track.state-name-as-variable
    task.cancellation.timers.timeout taskmanager.bind-host taskmanager.cpu.cores
    taskmanager.data.port taskmanager.debug.memory.log taskmanager.host
    taskmanager.jvm-exit-on-oom taskmanager.memory.flink.size
    taskmanager.memory.framework.heap.size taskmanager.memory.framework.off-heap.size
    taskmanager.memory.jvm-metaspace.size taskmanager.memory.jvm-overhead.fraction
    taskmanager.memory.jvm-overhead.max taskmanager.memory.jvm-overhead.min
    taskmanager.memory.managed.consumer-weights taskmanager.memory.managed.fraction
    taskmanager.memory.managed.size taskmanager.memory.min-segment-size
    taskmanager.memory.network.fraction taskmanager.memory.network.max
    taskmanager.memory.network.min taskmanager.memory.process.size
    taskmanager.memory.segment-size taskmanager.memory.task.heap.size
    taskmanager.memory.task.off-heap.size taskmanager.network.bind-policy
    taskmanager.network.detailed-metrics
    taskmanager.network.memory.buffers-per-channel
    taskmanager.network.memory.floating-buffers-per-gate taskmanager.registration.timeout
    taskmanager.resource-id taskmanager.rpc.port taskmanager.runtime.large-record-handler
    taskmanager.slot.timeout web.access-control-allow-origin web.log.path     web.timeout web.tmpdir web.upload.dir yarn.application.id yarn.application.name
    yarn.application.queue zookeeper.sasl.disable
    jobmanager.adaptive-batch-scheduler.max-parallelism
    jobmanager.adaptive-scheduler.resource-wait-timeout kubernetes.container.image
    execution.checkpointing.unaligned metrics.scope.jm-operator metrics.scope.jm.job
    metrics.scope.tm.job slotmanager.min-total-resource.cpu slotmanager.number-of-slots.min
    state.backend.forst.memory.fixed-per-slot state.backend.rocksdb.log.dir
    state.backend.rocksdb.memory.fixed-per-tm taskmanager.network.memory.buffer-debloat.period
    taskmanager.network.memory.buffer-debloat.samples
    taskmanager.network.memory.max-buffers-per-channel
"""

FLINK_KEYS: Final = frozenset(_NAMES.split())


_logger = logging.getLogger("firesteel")
_WITHOUT_EFFECT = "Flink's setting '%s' is accepted, but has no effect in Firesteel."
_noted: set[str] = set()
# The similarity from which a key counts as a misspelling. Flink's keys differ more from each other.
_CLOSE = 0.9
_VAGUELY_CLOSE = 0.6


class KeyStatus(Enum):
    """The meaning of a key to Firesteel."""

    USED = "used"
    SPARK = "passed through to Spark"
    FLINK = "known from Flink, without effect"
    UNKNOWN = "unknown"
    MISSPELLED = "misspelled"


@dataclass(frozen=True, slots=True)
class KeyFinding:
    """A key, its status, and the key that the user probably meant."""

    key: str
    status: KeyStatus
    suggestion: str | None = None


@lru_cache(maxsize=1)
def _declared() -> dict[str, Option[object]]:
    declared = {option.key: option for option in ALL_OPTIONS}
    for option in ALL_OPTIONS:
        declared.update(dict.fromkeys(option.deprecated_keys, option))
    return declared


def classify_key(key: str) -> KeyFinding:
    """Classify ``key``, without raising or logging."""
    option = _declared().get(key)
    if option is not None:
        return KeyFinding(key, KeyStatus.USED if option.is_used else KeyStatus.FLINK)
    if key.startswith("spark."):
        return KeyFinding(key, KeyStatus.SPARK)
    if key in FLINK_KEYS:
        return KeyFinding(key, KeyStatus.FLINK)
    # Firesteel declares all keys with its own prefix, so any other key with it is a mistake.
    own = key.startswith("firesteel.")
    # Flink has many similar keys. Only a misspelling of a used key is an error.
    candidates = [name for name, option in _declared().items() if option.is_used]
    close = difflib.get_close_matches(
        key, candidates, n=1, cutoff=_VAGUELY_CLOSE if own else _CLOSE
    )
    if close or own:
        return KeyFinding(key, KeyStatus.MISSPELLED, close[0] if close else None)
    if key.startswith(FLINK_PREFIXES):
        return KeyFinding(key, KeyStatus.FLINK)
    return KeyFinding(key, KeyStatus.UNKNOWN)


def check_keys(keys: Iterable[str]) -> None:
    """Raise ConfigurationError for a misspelled key, and log one note for a key without effect."""
    for key in sorted(keys):
        finding = classify_key(key)
        if finding.status is KeyStatus.MISSPELLED:
            hint = f" Did you mean '{finding.suggestion}'?" if finding.suggestion else ""
            raise ConfigurationError(
                f"Unknown setting '{key}'.{hint}", key=key, suggestion=finding.suggestion
            )
        if finding.status is KeyStatus.FLINK:
            _note_once(key, _WITHOUT_EFFECT)
        elif finding.status is KeyStatus.UNKNOWN:
            _note_once(key, "The setting '%s' is unknown to Firesteel and has no effect.")


def note_without_effect(option: Option[Any]) -> None:
    """Log one note for a setting of Flink that the program sets and that has no effect."""
    if not option.is_used:
        _note_once(option.key, _WITHOUT_EFFECT)


def _note_once(key: str, message: str) -> None:
    if key not in _noted:
        _noted.add(key)
        _logger.warning(message, key)
