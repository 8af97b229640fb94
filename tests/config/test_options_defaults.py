"""Defaults are those that Flink documents, or the manual lists the difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.config.options import ALL_OPTIONS

# Flink 2.3, docs/layouts/shortcodes/generated.
FLINK: dict[str, str | None] = {
    "execution.attached": "false",
    "execution.buffer-timeout.enabled": "true",
    "execution.buffer-timeout.interval": "100 ms",
    "execution.checkpointing.aligned-checkpoint-timeout": "0 ms",
    "execution.checkpointing.checkpoints-after-tasks-finish": "true",
    "execution.checkpointing.dir": None,
    "execution.checkpointing.externalized-checkpoint-retention": "NO_EXTERNALIZED_CHECKPOINTS",
    "execution.checkpointing.incremental": "false",
    "execution.checkpointing.interval": None,
    "execution.checkpointing.interval-during-backlog": None,
    "execution.checkpointing.local-backup.enabled": "false",
    "execution.checkpointing.max-concurrent-checkpoints": "1",
    "execution.checkpointing.min-pause": "0 ms",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "execution.checkpointing.num-retained": "1",
    "execution.checkpointing.savepoint-dir": None,
    "execution.checkpointing.snapshot-compression": "false",
    "execution.checkpointing.storage": None,
    "execution.checkpointing.timeout": "10 min",
    "execution.checkpointing.tolerable-failed-checkpoints": "0",
    "execution.checkpointing.unaligned.enabled": "false",
    "execution.checkpointing.unaligned.forced": "false",
    "execution.runtime-mode": "STREAMING",
    "execution.state-recovery.claim-mode": "NO_CLAIM",
    "execution.state-recovery.from-local": "false",
    "execution.state-recovery.ignore-unclaimed-state": "false",
    "execution.state-recovery.path": None,
    "execution.target": None,
    "execution.checkpointing.data-inline-threshold": "20 kb",
    "heartbeat.timeout": "50 s",
    "high-availability.cluster-id": "/default",
    "high-availability.storageDir": None,
    "high-availability.type": "none",
    "high-availability.zookeeper.client.connection-timeout": "15 s",
    "high-availability.zookeeper.client.session-timeout": "1 min",
    "high-availability.zookeeper.client.tolerate-suspended-connections": "false",
    "high-availability.zookeeper.path.root": "/flink",
    "high-availability.zookeeper.quorum": None,
    "execution.shutdown-on-attached-exit": "false",
    "historyserver.archive.fs.dir": None,
    "historyserver.archive.fs.refresh-interval": "10 s",
    "historyserver.archive.retained-jobs": "-1",
    "historyserver.web.address": None,
    "historyserver.web.port": "8082",
    "jobmanager.archive.fs.dir": None,
    "metrics.fetcher.update-interval": "10 s",
    "metrics.latency.interval": "0 ms",
    "metrics.reporters": None,
    "parallelism.default": "1",
    "pipeline.auto-generate-uids": "true",
    "pipeline.auto-watermark-interval": "200 ms",
    "pipeline.cached-files": None,
    "pipeline.closure-cleaner-level": "RECURSIVE",
    "pipeline.generic-types": "true",
    "pipeline.global-job-parameters": None,
    "pipeline.jars": None,
    "pipeline.max-parallelism": "-1",
    "pipeline.name": None,
    "pipeline.object-reuse": "false",
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism": "true",
    "pipeline.operator-chaining.enabled": "true",
    "python.archives": None,
    "python.executable": "python",
    "python.files": None,
    "python.fn-execution.bundle.size": "1000",
    "python.fn-execution.bundle.time": "1000 ms",
    "python.metric.enabled": "true",
    "python.profile.enabled": "false",
    "python.requirements": None,
    "rest.address": None,
    "rest.async.store-duration": "5 min",
    "rest.bind-address": None,
    "rest.bind-port": "8081",
    "rest.port": "8081",
    "restart-strategy.exponential-delay.attempts-before-reset-backoff": "2147483647",
    "restart-strategy.exponential-delay.backoff-multiplier": "1.5",
    "restart-strategy.exponential-delay.initial-backoff": "1 s",
    "restart-strategy.exponential-delay.jitter-factor": "0.1",
    "restart-strategy.exponential-delay.max-backoff": "1 min",
    "restart-strategy.exponential-delay.reset-backoff-threshold": "1 h",
    "restart-strategy.failure-rate.delay": "1 s",
    "restart-strategy.failure-rate.failure-rate-interval": "1 min",
    "restart-strategy.failure-rate.max-failures-per-interval": "1",
    "restart-strategy.fixed-delay.attempts": "1",
    "restart-strategy.fixed-delay.delay": "1 s",
    "restart-strategy.type": None,
    "s3.access-key": None,
    "s3.endpoint": None,
    "s3.endpoint.region": None,
    "s3.path.style.access": None,
    "s3.secret-key": None,
    "s3.session.token": None,
    "security.ssl.rest.enabled": "false",
    "state.backend.changelog.enabled": "false",
    "state.backend.rocksdb.checkpoint.transfer.thread.num": "4",
    "state.backend.rocksdb.localdir": None,
    "state.backend.rocksdb.memory.fixed-per-slot": None,
    "state.backend.rocksdb.predefined-options": "DEFAULT",
    "state.backend.type": "hashmap",
    "state.latency-track.keyed-state-enabled": "false",
    "slot.request.timeout": "5 min",
    "task.cancellation.interval": "30 s",
    "task.cancellation.timeout": "3 min",
    "taskmanager.network.memory.buffer-debloat.enabled": "false",
    "taskmanager.network.memory.buffer-debloat.target": "1 s",
    "taskmanager.numberOfTaskSlots": "1",
    "web.cancel.enable": "true",
    "web.checkpoints.history": "10",
    "web.exception-history-size": "16",
    "web.history": "5",
    "web.refresh-interval": "3 s",
    "web.rescale.enable": "true",
    "web.submit.enable": "true",
}

# Settings that Flink does not have.
OWN = ("firesteel.", "rest.enabled")

_PAGE = Path(__file__).parents[2] / "docs" / "from-pyflink.md"
_BY_KEY = {key: option for option in ALL_OPTIONS for key in (option.key, *option.deprecated_keys)}


@pytest.mark.parametrize("key", FLINK)
def test_a_default_is_flinks_or_the_manual_says_why_not(key: str) -> None:
    option, documented = _BY_KEY[key], FLINK[key]
    flinks = None if documented is None else option.parse(documented)
    section = _PAGE.read_text(encoding="utf-8").partition("## Different defaults")[2]
    rows = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    listed = any(f"`{key}`" in row for row in rows)
    # A default that is empty is no setting.
    assert listed is ((option.default or None) != (flinks or None))


def test_every_setting_of_flink_is_compared() -> None:
    compared = {_BY_KEY[key].key for key in FLINK}
    assert {option.key for option in ALL_OPTIONS if not option.key.startswith(OWN)} <= compared
