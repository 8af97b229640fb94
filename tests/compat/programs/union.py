"""Several streams as one, one of them twice, followed by a chain of map, filter and map.

Output, in any order:
    even> 4
    even> 4
    even> 40
    even> 60
    even> 60
    total> 1
    total> 3
    total> 4
    total> 6
    total> 26
    total> 56
"""

from firesteel.common import Types
from firesteel.datastream import FilterFunction, MapFunction, StreamExecutionEnvironment


class Double(MapFunction):
    def map(self, value):
        return value * 2


class Even(FilterFunction):
    def filter(self, value):
        return value % 2 == 0


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    ones = env.from_collection([1, 2], type_info=Types.INT())
    tens = env.from_collection([20, 30], type_info=Types.INT())
    ones.union(tens, ones).filter(Even()).union(tens.filter(lambda n: n == 30)).map(
        Double(), output_type=Types.INT()
    ).print("even")

    numbers = env.from_collection([1, 2, 1, 2, 20, 30], type_info=Types.INT())
    numbers.key_by(lambda _: "all").reduce(lambda a, b: a + b).print("total")
    env.execute("union")


if __name__ == "__main__":
    main()
