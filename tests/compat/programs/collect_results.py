"""Results come back to the program, and one environment runs one job after another.

Output:
    [1, 4, 9, 16]
    ('a', 3)
    ('b', 2)
    ['x']
    FINISHED
"""

from firesteel.common import Types
from firesteel.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    squares = env.from_collection([1, 2, 3, 4]).map(lambda n: n * n, output_type=Types.INT())
    with squares.execute_and_collect() as results:
        print(sorted(results))

    pairs = env.from_collection([("a", 1), ("b", 2), ("a", 2)])
    last: dict[str, int] = {}
    for key, count in (
        pairs.key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .execute_and_collect("sums")
    ):
        last[key] = max(count, last.get(key, 0))
    for pair in sorted(last.items()):
        print(pair)

    print(env.from_collection(["x", "y", "z"]).execute_and_collect("first", limit=1))

    env.from_collection([1]).filter(lambda n: n > 1).print()
    client = env.execute_async("nothing to see")
    client.get_job_execution_result().result()
    print(client.get_job_status().result().name)


if __name__ == "__main__":
    main()
