"""Connected components: groups of people who are linked by friendships.

Each person starts as a group of one, with the own name as the name of the group. A person who
learns a smaller group name adopts it and sends it to all friends. These messages pass through a
loop until no name changes.

Output:
    ann: ann bob cid dan
    eve: eve fay
    gus: gus hal ida
"""

from firesteel.common import Types
from firesteel.datastream import OutputTag, StreamExecutionEnvironment
from firesteel.datastream.functions import KeyedProcessFunction
from firesteel.datastream.state import ListStateDescriptor, ValueStateDescriptor

FRIENDS = [
    ("cid", "dan"),
    ("gus", "ida"),
    ("bob", "ann"),
    ("eve", "fay"),
    ("dan", "bob"),
    ("hal", "ida"),
]
NEWS = OutputTag("news", Types.PICKLED_BYTE_ARRAY())


class Person(KeyedProcessFunction):
    """Processes the messages (person, "friend", name) and (person, "group", name)."""

    def open(self, runtime_context):
        self.friends = runtime_context.get_list_state(
            ListStateDescriptor("friends", Types.STRING())
        )
        self.group = runtime_context.get_state(ValueStateDescriptor("group", Types.STRING()))

    def process_element(self, value, ctx):
        person, what, name = value
        group = self.group.value() or person
        if what == "friend":
            self.friends.add(name)
            self.group.update(group)
            yield person, group
            yield NEWS, (name, "group", group)
        elif name < group:
            self.group.update(name)
            yield person, name
            for friend in self.friends.get():
                yield NEWS, (friend, "group", name)


def both_ways(friends):
    one, other = friends
    yield one, "friend", other
    yield other, "friend", one


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)

    known = env.from_collection(FRIENDS).rebalance().flat_map(both_ways)
    loop = known.iterate(max_wait=200)
    groups = loop.key_by(lambda message: message[0]).process(Person())
    loop.close_with(groups.get_side_output(NEWS))

    # The name of a group only decreases, so the smallest name is the final one.
    final: dict[str, str] = {}
    with groups.execute_and_collect("connected components") as changes:
        for person, group in changes:
            final[person] = min(group, final.get(person, group))
    for name in sorted(set(final.values())):
        print(f"{name}: {' '.join(sorted(p for p in final if final[p] == name))}")


if __name__ == "__main__":
    main()
