"""Process functions that use open(), the records, and the current key.

Output, in any order:
    fahrenheit (1/1)
    kitchen: 68.0
    garden: 50.0
    kitchen: 71.6
    kitchen 1
    garden 1
    kitchen 2
"""

from firesteel.common import Types
from firesteel.datastream import (
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)


class Fahrenheit(ProcessFunction):
    def __init__(self):
        self.greeting = None

    def open(self, runtime_context: RuntimeContext):
        index = runtime_context.get_index_of_this_subtask() + 1
        count = runtime_context.get_number_of_parallel_subtasks()
        self.greeting = f"fahrenheit ({index}/{count})"

    def process_element(self, value, ctx: "ProcessFunction.Context"):
        if self.greeting:
            yield self.greeting
            self.greeting = None
        place, celsius = value
        yield f"{place}: {celsius * 9 / 5 + 32}"


class Count(KeyedProcessFunction):
    def __init__(self):
        self.seen = {}

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        key = ctx.get_current_key()
        self.seen[key] = self.seen.get(key, 0) + 1
        return [f"{key} {self.seen[key]}"]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    readings = env.from_collection([("kitchen", 20), ("garden", 10), ("kitchen", 22)])
    readings.process(Fahrenheit(), output_type=Types.STRING()).print()
    readings.key_by(lambda r: r[0], key_type=Types.STRING()).process(Count()).print()
    env.execute("process functions")


if __name__ == "__main__":
    main()
