"""Word count: a new total for every word of the input.

Output:
    ('to', 1)
    ('be', 1)
    ('or', 1)
    ('not', 1)
    ('to', 2)
    ('be', 2)
"""

from firesteel.datastream import StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)

    lines = env.from_collection(["to be or not", "to be"])
    words = lines.flat_map(str.split).map(lambda word: (word, 1))
    totals = words.key_by(lambda word: word[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    totals.print()

    env.execute("word count")


if __name__ == "__main__":
    main()
