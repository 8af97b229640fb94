"""The program chooses the subtask of each record; print shows it.

Output, in any order:
    1> (0,a)
    2> (1,b)
    1> (2,c)
    2> (3,d)
    all:1> 8
    all:2> 8
"""

from firesteel.common import Types
from firesteel.datastream import MapFunction, Partitioner, StreamExecutionEnvironment

PAIR = Types.TUPLE([Types.INT(), Types.STRING()])


class ByParity(Partitioner):
    def partition(self, key, num_partitions):
        return key % num_partitions


class Same(MapFunction):
    def map(self, value):
        return value


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    pairs = env.from_collection([(0, "a"), (1, "b"), (2, "c"), (3, "d")], type_info=PAIR)
    pairs.partition_custom(ByParity(), lambda pair: pair[0]).map(Same(), output_type=PAIR).print()

    env.from_collection([8], type_info=Types.INT()).broadcast().map(
        lambda number: number, output_type=Types.INT()
    ).print("all")
    env.execute("custom partitioning")


if __name__ == "__main__":
    main()
