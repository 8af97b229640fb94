"""From a Spark DataFrame to a stream and back.

The program works on Spark's session, if there is one: so a DataFrame can be made with Spark, go
through DataStream operators, and come back as a DataFrame that Spark writes wherever it can.

Output:
    be 2
    or 1
    to 2
"""

import os
import sys

from pyspark.sql import SparkSession

from firesteel.common import Row, Types
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from firesteel.spark.java import java_environment

COUNTED = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.LONG()])


def start_spark():
    """A session of your own; tasks shall run the Python that runs this program."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with java_environment():  # finds Java where only the extra `jre` has brought one
        return SparkSession.builder.master("local[2]").getOrCreate()


def main():
    spark = start_spark()
    lines = spark.createDataFrame([("to be",), ("or to be",)], "line string")

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)

    words = env.from_dataframe(lines).flat_map(lambda row: row.line.split())
    counts = (
        words.map(lambda word: Row(word=word, count=1), COUNTED)
        .key_by(lambda row: row.word)
        .reduce(lambda a, b: Row(word=a.word, count=a.count + b.count))
    )
    counts.to_dataframe(show)
    env.execute("dataframes")


def show(frame, epoch):
    """Called in the driver; a batch has one epoch. Here `frame.write...` would save it."""
    for row in frame.orderBy("word").collect():
        print(row["word"], row["count"])


if __name__ == "__main__":
    main()
