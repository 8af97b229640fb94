"""Fixtures and settings for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import class_archive
from tests.thoroughness import examples

if TYPE_CHECKING:
    from firesteel.filesystems.file_systems import FileSystemOptions
    from tests.servers.kafka import KafkaBroker, KafkaCluster
    from tests.servers.postgres import PostgresServer
    from tests.servers.zookeeper import Ensemble

# How long an example takes says more about the machine than about the code.
settings.register_profile("search", deadline=None)
# The same examples every time: a new find of the search must not block an unrelated change.
settings.register_profile("firesteel", deadline=None, derandomize=True, max_examples=examples(100))
settings.load_profile(os.environ.get("FIRESTEEL_HYPOTHESIS_PROFILE", "firesteel"))

class_archive.use()

_SPARK_TESTS = Path(__file__).parent / "integration"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the files that tests compare generated text with, instead of comparing",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _SPARK_TESTS in item.path.parents:
            item.add_marker(pytest.mark.spark)
    # Long files first: processes that share the tests then end together.
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker for all tests of a process: it takes seconds to start."""
    from tests.servers.kafka import running_broker

    with running_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def newest_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker with version 2 of transactions."""
    from tests.servers.kafka import running_broker, upgrade_features

    with running_broker(tmp_path_factory.mktemp("newest-kafka")) as broker:
        upgrade_features(broker.servers)
        yield broker


@pytest.fixture(scope="session")
def kafka_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three brokers with version 2 of transactions."""
    from tests.servers.kafka import running_cluster

    with running_cluster(tmp_path_factory.mktemp("kafka-cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Three servers of ZooKeeper for all tests of a process."""
    from tests.servers.zookeeper import running_ensemble

    with running_ensemble(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server of PostgreSQL for all tests of a process."""
    from tests.servers.postgres import running_postgres

    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator[FileSystemOptions]:
    """The settings to reach an S3 server with a bucket ``checkpoints``."""
    from tests.servers.s3 import s3_server

    with s3_server() as options:
        yield options
