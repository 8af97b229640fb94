"""A broadcast stream whose records every subtask remembers.

Output, in any order:
    knows 1
    knows 1
    knows 2
    knows 2
"""

from firesteel.common import Types
from firesteel.datastream import BroadcastProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import MapStateDescriptor

WORDS = MapStateDescriptor("words", Types.STRING(), Types.LONG())


class Remember(BroadcastProcessFunction):
    def process_element(self, value, ctx: "BroadcastProcessFunction.ReadOnlyContext"):
        # Whether a word is known already depends on which side is faster.
        state = ctx.get_broadcast_state(WORDS)
        if value in state:
            assert state.get(value) == len(value)
        return []

    def process_broadcast_element(self, value, ctx: "BroadcastProcessFunction.Context"):
        state = ctx.get_broadcast_state(WORDS)
        state.put(value, len(value))
        yield f"knows {len(list(state.keys()))}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    words = env.from_collection(["fire", "steel"], type_info=Types.STRING())
    known = env.from_collection(["fire", "spark"], type_info=Types.STRING())
    result = words.connect(known.broadcast(WORDS)).process(Remember(), output_type=Types.STRING())
    for line in result.execute_and_collect("broadcast state"):
        print(line)


if __name__ == "__main__":
    main()
