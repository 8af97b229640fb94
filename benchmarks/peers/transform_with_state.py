"""PySpark's own stateful operator, transformWithState, on the keyed reductions.

The numbers come from Spark's built-in rate source, made and shuffled inside the JVM, so that Python does nothing but the
reduction. State is read once and written once for each key and micro-batch, and every record yields a result. Rows, not
pandas frames: for groups of this size they are the faster of the two.
"""

import tempfile
import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from benchmarks.cases import BY_NAME, Case, Outcome, Reduce
from benchmarks.measure import parse_arguments, run_cases
from benchmarks.peers.spark_session import start_session

# Few batches of this many records: large ones serve it best, for state is read and written once for a key and batch.
BATCH_RECORDS = 200_000
RECORDS = {"reduce_1k": 1_600_000, "reduce_1m": 400_000}
KEYS = {"reduce_1k": 1_000, "reduce_1m": 1_000_000}
