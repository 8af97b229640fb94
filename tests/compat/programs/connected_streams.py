"""Two streams of different types in one function: co-map, co-flat-map, keyed co-process.

Output, in any order:
    map> number 1
    map> number 2
    map> word b
    map> word c
    flat_map> 10
    flat_map> 20
    flat_map> 200
    flat_map> B
    flat_map> C
    joined> (1,one,a)
    joined> (2,two,b)
    joined> (2,two,c)
"""

from firesteel.common import Types
from firesteel.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    KeyedCoProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)


class Describe(CoMapFunction):
    def map1(self, value):
        return f"number {value}"

    def map2(self, value):
        return None if value == "a" else f"word {value}"


class Repeat(CoFlatMapFunction):
    def flat_map1(self, value):
        for i in range(value):
            yield value * 10 ** (i + 1)

    def flat_map2(self, value):
        if value != "a":
            yield value.upper()


class Join(KeyedCoProcessFunction):
    def __init__(self):
        self.left: dict = {}
        self.right: dict = {}

    def open(self, runtime_context: RuntimeContext):
        self.left = {}
        self.right = {}

    def process_element1(self, value, ctx: "KeyedCoProcessFunction.Context"):
        key = ctx.get_current_key()
        self.left.setdefault(key, []).append(value[1])
        for other in self.right.get(key, []):
            yield key, value[1], other

    def process_element2(self, value, ctx: "KeyedCoProcessFunction.Context"):
        key = ctx.get_current_key()
        self.right.setdefault(key, []).append(value[1])
        for other in self.left.get(key, []):
            yield key, other, value[1]


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    numbers = env.from_collection([1, 2], type_info=Types.INT())
    words = env.from_collection(["a", "b", "c"], type_info=Types.STRING())
    both = numbers.connect(words)
    both.map(Describe(), output_type=Types.STRING()).print("map")
    both.flat_map(Repeat()).print("flat_map")

    names = env.from_collection([(1, "one"), (2, "two"), (3, "three")])
    letters = env.from_collection([(1, "a"), (2, "b"), (2, "c"), (4, "d")])
    names.connect(letters).key_by(lambda n: n[0], lambda x: x[0], key_type=Types.INT()).process(
        Join(), output_type=Types.TUPLE([Types.INT(), Types.STRING(), Types.STRING()])
    ).print("joined")
    env.execute("connected streams")


if __name__ == "__main__":
    main()
