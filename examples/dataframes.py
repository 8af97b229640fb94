"""From a Spark DataFrame to a stream and back.

Jobs run on the Spark session of the process. Spark creates a DataFrame, DataStream operators
process its rows, and the results become a DataFrame that Spark can write to any data source.

Output:
    be 2
    or 1
    to 2
"""

from firesteel.common import Row, Types
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

COUNTED = Types.ROW_NAMED(["word", "count"], [Types.STRING(), Types.LONG()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)

    spark = env.get_spark_session()
    lines = spark.createDataFrame([("to be",), ("or to be",)], "line string")
    words = env.from_dataframe(lines).flat_map(lambda row: row.line.split())
    counts = (
        words.map(lambda word: Row(word=word, count=1), COUNTED)
        .key_by(lambda row: row.word)
        .reduce(lambda a, b: Row(word=a.word, count=a.count + b.count))
    )
    counts.to_dataframe(show)
    env.execute("dataframes")


def show(frame, epoch):
    """Runs in the driver, once in a batch job. Call `frame.write...` here to save the results."""
    for row in frame.orderBy("word").collect():
        print(row["word"], row["count"])


if __name__ == "__main__":
    main()
