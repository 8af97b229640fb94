"""In batch mode a key has one result: the last one.

Output, in any order:
    (to,2)
    (be,2)
    (or,1)
    (not,1)
"""

from firesteel.common import Types
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.set_parallelism(1)

    env.from_collection(["to be or not", "to be"]).flat_map(str.split).map(
        lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.LONG()])
    ).key_by(lambda pair: pair[0]).sum(1).print()
    env.execute()


if __name__ == "__main__":
    main()
