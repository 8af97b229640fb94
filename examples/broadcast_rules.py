"""Broadcast state: rules that come as a stream, and that every subtask applies.

A rule names a kind of event and how often a user may cause it before somebody should look. Rules
and events have no order between them, so events are counted whether there is a rule or not, and a
new rule looks at what was counted before it came.

Output, in any order:
    Ada: 2 times click
    Bob: 3 times view
"""

from firesteel.common import Types
from firesteel.datastream import KeyedBroadcastProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import MapStateDescriptor

RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
COUNTS = MapStateDescriptor("counts", Types.STRING(), Types.LONG())


EVENTS = [
    ("Ada", "click"),
    ("Bob", "view"),
    ("Bob", "click"),
    ("Ada", "click"),
    ("Bob", "view"),
    ("Ada", "view"),
    ("Bob", "view"),
]


class Thresholds(KeyedBroadcastProcessFunction):
    """Keyed by user; a rule is (kind of event, threshold)."""

    def open(self, runtime_context):
        self.counts = runtime_context.get_map_state(COUNTS)

    def process_element(self, value, ctx):
        user, kind = value
        count = (self.counts.get(kind) or 0) + 1
        self.counts.put(kind, count)
        if count == ctx.get_broadcast_state(RULES).get(kind):
            yield message(user, count, kind)

    def process_broadcast_element(self, value, ctx):
        kind, threshold = value
        ctx.get_broadcast_state(RULES).put(kind, threshold)
        passed = []

        def check(user, counts):
            if (counts.get(kind) or 0) >= threshold:
                passed.append(message(user, threshold, kind))

        ctx.apply_to_keyed_state(COUNTS, check)
        yield from passed


def message(user, count, kind):
    return f"{user}: {count} times {kind}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    events = env.from_collection(EVENTS)
    rules = env.from_collection([("click", 2), ("view", 3)]).broadcast(RULES)
    alerts = (
        events.key_by(lambda event: event[0]).connect(rules).process(Thresholds(), Types.STRING())
    )
    with alerts.execute_and_collect("broadcast rules") as lines:
        for line in lines:
            print(line)


if __name__ == "__main__":
    main()
