"""Broadcast state: rules that arrive as a stream and apply in every subtask.

A rule names a kind of event and the number of events of a user that raises an alert. There is no
order between rules and events. The job therefore counts all events, with or without a rule, and
applies a new rule to the existing counts.

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
    """Counts events per user. A rule is a pair (kind of event, threshold)."""

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
