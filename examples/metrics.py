"""Metrics of functions, read through the client of the job.

Output:
    lengths: 6 words, mean 4.0, longest 6
    short words: 2
    the job's accumulators: {'Measure.short words': 2}
"""

from firesteel.datastream import MapFunction, StreamExecutionEnvironment


class Measure(MapFunction):
    def open(self, runtime_context):
        group = runtime_context.get_metrics_group()
        self.lengths = group.distribution("length")
        self.short_words = group.counter("short words")

    def map(self, value):
        self.lengths.update(len(value))
        if len(value) < 4:
            self.short_words.inc()
        return len(value)


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    words = env.from_collection(["spark", "and", "flint", "strike", "fire", "x"])
    words.map(Measure()).name("Measure")

    client = env.execute_async("metrics")
    result = client.get_job_execution_result().result()

    metrics = client.get_metrics()
    lengths = metrics["Measure.length"]
    print(f"lengths: {lengths['count']} words, mean {lengths['mean']}, longest {lengths['max']}")
    print("short words:", metrics["Measure.short words"]["count"])
    print("the job's accumulators:", result.get_all_accumulator_results())


if __name__ == "__main__":
    main()
