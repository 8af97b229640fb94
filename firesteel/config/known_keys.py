"""Flink's keys that Firesteel knows by name only.

They configure what Spark does instead, or the JVM. Setting them is no mistake, so they are
accepted with a note; and they keep a correct key from being taken for a misspelled one.
"""

from __future__ import annotations

from typing import Final

__all__ = ["FLINK_KEYS", "FLINK_PREFIXES"]

# Whatever starts like this is Flink's, also where the rest is the user's choice.
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
    execution.shutdown-on-attached-exit execution.sorted-inputs.enabled
    execution.sorted-inputs.memory execution.submit-failed-job-on-application-error
    fs.default-scheme fs.overwrite-files fs.output.always-create-directory heartbeat.interval
    heartbeat.rpc-failure-threshold high-availability.cluster-id high-availability.jobmanager.port
    high-availability.storageDir high-availability.type high-availability.zookeeper.quorum
    high-availability.zookeeper.path.root historyserver.archive.fs.refresh-interval
    historyserver.archive.retained-jobs historyserver.web.address historyserver.web.port
    io.tmp.dirs jobmanager.adaptive-scheduler.max-parallelism
    jobmanager.adaptive-scheduler.submission.resource-wait-timeout jobmanager.archive.fs.dir
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
    rest.async.store-duration rest.bind-address rest.client.max-content-length
    rest.connection-timeout rest.flamegraph.enabled rest.idleness-timeout rest.retry.delay
    rest.retry.max-attempts rest.server.max-content-length rest.profiling.enabled
    scheduler-mode security.kerberos.login.keytab security.kerberos.login.principal
    security.ssl.internal.enabled security.ssl.rest.enabled slot.idle.timeout
    slot.request.timeout slotmanager.max-total-resource.cpu slotmanager.number-of-slots.max
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
    taskmanager.network.detailed-metrics taskmanager.network.memory.buffer-debloat.enabled
    taskmanager.network.memory.buffer-debloat.target taskmanager.network.memory.buffers-per-channel
    taskmanager.network.memory.floating-buffers-per-gate taskmanager.registration.timeout
    taskmanager.resource-id taskmanager.rpc.port taskmanager.runtime.large-record-handler
    taskmanager.slot.timeout web.access-control-allow-origin web.log.path web.rescale.enable
    web.timeout web.tmpdir web.upload.dir yarn.application.id yarn.application.name
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
