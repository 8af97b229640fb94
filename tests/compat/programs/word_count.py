"""Counts words, with functions of all shapes.

Output:
    (to,1)
    (be,1)
    (or,1)
    (not,1)
    (to,2)
    (be,2)
"""

from firesteel.common import Types
from firesteel.datastream import FlatMapFunction, StreamExecutionEnvironment


class Split(FlatMapFunction):
    def flat_map(self, value):
        yield from value.split()


def word_count():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    lines = env.from_collection(["to be or not", "", "to be"], type_info=Types.STRING())
    counts = (
        lines.flat_map(Split(), output_type=Types.STRING())
        .map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0], key_type=Types.STRING())
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )
    counts.print()
    env.execute("word count")


if __name__ == "__main__":
    word_count()
