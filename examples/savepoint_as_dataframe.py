"""State as a DataFrame: stop a job, inspect and change its state, and resume the job.

A shop counts the points of its customers. The program stops the job with a savepoint and adds 100
points for every customer and 500 for a new one. The job then resumes with the purchases of the next
day.

Output:
    ada has 10 points
    bob has 5 points
    ada has 30 points
    stopped with: ada 30, bob 5
    ada has 131 points
    eve has 502 points
"""

import tempfile
import time
from pathlib import Path

from firesteel.common import Configuration, Duration, Types
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.state_processor import SavepointReader, SavepointWriter

PURCHASE = Types.TUPLE([Types.STRING(), Types.LONG()])


class CountPoints(KeyedProcessFunction):
    def open(self, runtime_context):
        self.points = runtime_context.get_state(ValueStateDescriptor("points", Types.LONG()))
        self.purchases = runtime_context.get_metrics_group().counter("purchases")

    def process_element(self, value, ctx):
        self.points.update((self.points.value() or 0) + value[1])
        self.purchases.inc()
        yield f"{value[0]} has {self.points.value()} points"


def environment(savepoint=None):
    configuration = Configuration()
    if savepoint is not None:
        configuration.set_string("execution.state-recovery.path", savepoint)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)


def build(env, directory, *, for_ever):
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(directory))
    if for_ever:
        lines = lines.monitor_continuously(Duration.of_millis(200))
    purchases = env.from_source(lines.build(), None, "Purchases").uid("purchases")
    purchases = purchases.map(lambda line: (line.split()[0], int(line.split()[1])), PURCHASE)
    by_customer = purchases.key_by(lambda purchase: purchase[0], Types.STRING())
    by_customer.process(CountPoints(), Types.STRING()).uid("points").name("Points").print()


def main():
    with tempfile.TemporaryDirectory() as directory:
        days, savepoints = Path(directory) / "days", Path(directory) / "savepoints"
        days.mkdir()
        (days / "monday").write_text("ada 10\nbob 5\nada 20\n")

        env = environment()
        build(env, days, for_ever=True)
        client = env.execute_async("points")
        while client.get_metrics().get("Points.purchases", {"count": 0})["count"] < 3:
            time.sleep(0.1)
        savepoint = client.stop_with_savepoint(False, str(savepoints)).result()

        points = SavepointReader.read(env, savepoint).read_keyed_state("points", "points")
        rows = points.orderBy("key").collect()
        print("stopped with:", ", ".join(f"{row['key']} {row['value']}" for row in rows))

        generous = points.selectExpr("key", "value + 100 as value")
        spark = env.get_spark_session()
        generous = generous.union(spark.createDataFrame([("eve", 500)], points.schema))
        writer = SavepointWriter.from_existing_savepoint(env, savepoint)
        writer.with_keyed_state("points", "points", generous).write(str(savepoints / "generous"))

        (days / "tuesday").write_text("ada 1\neve 2\n")
        env = environment(str(savepoints / "generous"))
        build(env, days, for_ever=False)
        env.execute("points")


if __name__ == "__main__":
    main()
