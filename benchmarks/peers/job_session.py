"""Spark session with Firesteel's settings, for references that send buffers through Python."""

from pyspark.sql import SparkSession

from firesteel.common import Configuration
from firesteel.spark.session import acquire_session


def job_session(parallelism: int) -> SparkSession:
    """Return a session like that of a job, on the Spark of this process or on a new one."""
    configuration = Configuration()
    configuration.set_string("firesteel.spark.master", f"local[{parallelism}]")
    return acquire_session(parallelism, configuration)
