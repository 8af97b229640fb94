"""Choosing a Java runtime, without starting Spark."""

from __future__ import annotations

import os

from firesteel.spark.java import find_java, java_environment


def test_a_nested_environment_finds_the_java_of_the_outer_one_and_not_the_launcher() -> None:
    before = os.environ.get("JAVA_HOME")
    with java_environment():
        outer = os.environ["FIRESTEEL_JAVA"]
        with java_environment():
            assert os.environ["FIRESTEEL_JAVA"] == outer
            assert str(find_java()) == outer
    assert os.environ.get("JAVA_HOME") == before
