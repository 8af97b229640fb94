"""Settings of several masters: who elects the leader, and where their common data is."""

from __future__ import annotations

from datetime import timedelta

from firesteel.config.option import Option
from firesteel.config.values import BOOLEAN, DURATION, STRING, choice

_HA = "high-availability."
_OWN = "firesteel.high-availability."
_ZOOKEEPER = _HA + "zookeeper."

HA_TYPE: Option[str] = Option(
    _HA + "type",
    choice("none", "zookeeper", "filesystem"),
    "none",
    "The election of the leader among several masters: zookeeper, filesystem (leases in a directory "
    "or S3 bucket that all masters share), or none.",
    deprecated_keys=("high-availability",),
)
HA_STORAGE_DIR: Option[str | None] = Option(
    _HA + "storageDir",
    STRING,
    None,
    "The directory of submitted jobs, and of checkpoints without a directory of their own. All "
    "masters and tasks share it. With type filesystem it is a local or mounted directory, or s3://.",
)
HA_CLUSTER_ID: Option[str] = Option(
    _HA + "cluster-id",
    STRING,
    "/default",
    "The name of the group of masters, or of the application. Each group needs its own.",
)
HA_LEASE_DURATION: Option[timedelta] = Option(
    _OWN + "lease-duration",
    DURATION,
    timedelta(seconds=8),
    "With type filesystem: a leader that has not renewed its lease for this time is replaced.",
)
HA_LEASE_RENEWAL: Option[timedelta] = Option(
    _OWN + "lease-renewal",
    DURATION,
    timedelta(seconds=2),
    "With type filesystem: the time between two renewals of a lease. Standbys look at it four times "
    "as often.",
)
ZOOKEEPER_QUORUM: Option[str | None] = Option(
    _ZOOKEEPER + "quorum",
    STRING,
    None,
    "The servers of ZooKeeper: host:port, with commas.",
)
ZOOKEEPER_ROOT: Option[str] = Option(
    _ZOOKEEPER + "path.root",
    STRING,
    "/firesteel",
    "The node of ZooKeeper below which every group has a node. Flink's default is /flink.",
)
ZOOKEEPER_SESSION_TIMEOUT: Option[timedelta] = Option(
    _ZOOKEEPER + "client.session-timeout",
    DURATION,
    timedelta(seconds=60),
    "A leader that ZooKeeper has not heard from for this time is replaced.",
)
ZOOKEEPER_CONNECTION_TIMEOUT: Option[timedelta] = Option(
    _ZOOKEEPER + "client.connection-timeout",
    DURATION,
    timedelta(seconds=15),
    "The time limit for a connection, and for a call of ZooKeeper.",
)
ZOOKEEPER_TOLERATE_SUSPENDED: Option[bool] = Option(
    _ZOOKEEPER + "client.tolerate-suspended-connections",
    BOOLEAN,
    False,
    "Let a leader that has lost its connection lead on until its session ends. Otherwise it steps "
    "down at once.",
)
