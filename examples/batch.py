"""Batch execution: one Spark job, and one result per key instead of one per record.

Output, in any order:
    even 2450
    odd 2500
"""

from firesteel.common import Types
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)

    numbers = env.from_sequence(0, 99)
    named = numbers.map(lambda number: ("odd" if number % 2 else "even", number))
    sums = named.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    lines = sums.map(lambda pair: f"{pair[0]} {pair[1]}", Types.STRING())
    with lines.execute_and_collect("batch") as results:
        for line in results:
            print(line)


if __name__ == "__main__":
    main()
