"""The aggregations of a keyed stream, and print with an identifier.

Output, in any order:
    sum> (a,3)
    sum> (b,5)
    sum> (a,4)
    sum> (a,11)
    max> (a,3)
    max> (b,5)
    max> (a,3)
    max> (a,7)
    min_by> (a,3)
    min_by> (b,5)
    min_by> (a,1)
    min_by> (a,1)
"""

from firesteel.common.typeinfo import Types
from firesteel.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    sales = env.from_collection(
        [("a", 3), ("b", 5), ("a", 1), ("a", 7)],
        type_info=Types.TUPLE([Types.STRING(), Types.INT()]),
    )
    by_shop = sales.key_by(lambda sale: sale[0])
    by_shop.sum(1).print("sum")
    by_shop.max(1).print("max")
    by_shop.min_by(1).print("min_by")
    env.execute("rolling aggregates")


if __name__ == "__main__":
    main()
