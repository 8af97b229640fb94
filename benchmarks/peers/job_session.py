"""The Spark session of the references that send buffers through Python as Firesteel does: all of its settings are Firesteel's."""

from pyspark.sql import SparkSession

from firesteel.common import Configuration
from firesteel.spark.session import acquire_session


def job_session(parallelism: int) -> SparkSession:
    """A session like the one of a job, of the Spark that runs in this process, or of a new one."""
    configuration = Configuration()
    configuration.set_string("firesteel.spark.master", f"local[{parallelism}]")
    return acquire_session(parallelism, configuration)
