import pytest

from firesteel.datastream import OutputTag, ProcessFunction, SlotSharingGroup
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_ids import hash_of_uid
from firesteel.graph.transformations import ChainingStrategy

SETTERS = {
    "name": "other",
    "uid": "my-uid",
    "set_uid_hash": "a" * 32,
    "set_parallelism": 1,
    "set_max_parallelism": 5,
    "set_buffer_timeout": 0,
    "set_description": "text",
    "slot_sharing_group": "g",
}


@pytest.fixture(name="mapped")
def _mapped(env):
    return env.from_sequence(1, 10).map(abs).name("m")


def test_settings_reach_the_graph(mapped, node):
    result = (
        mapped.uid("my-uid")
        .set_parallelism(3)
        .set_max_parallelism(12)
        .set_buffer_timeout(7)
        .set_description("text")
        .slot_sharing_group(SlotSharingGroup("g"))
        .start_new_chain()
    )
    assert result is mapped
    m = node("m")
    assert m.operator_id == hash_of_uid("my-uid")
    assert (m.parallelism, m.max_parallelism, m.buffer_timeout) == (3, 12, 7)
    assert (m.description, m.slot_sharing_group) == ("text", "g")
    assert m.chaining is ChainingStrategy.HEAD


def test_uid_hash(mapped, node):
    mapped.set_uid_hash("AB" * 16)
    assert node("m").operator_id == "ab" * 16


def test_chaining_can_be_seen_in_the_job_graph(env, mapped):
    mapped.print()

    def chains():
        return [vertex.name for vertex in env._compile().job_graph.vertices]

    assert len(chains()) == 1
    mapped.start_new_chain()
    assert chains() == ["Source: Sequence Source", "m -> Sink: Print to Std. Out"]
    mapped.disable_chaining()
    assert chains() == ["Source: Sequence Source", "m", "Sink: Print to Std. Out"]


def test_force_non_parallel(mapped, node):
    mapped.force_non_parallel()
    assert (node("m").parallelism, node("m").max_parallelism) == (1, 1)
    mapped.set_parallelism(1).set_max_parallelism(1)
    with pytest.raises(InvalidProgramError, match="non parallel operator 'm' must be 1"):
        mapped.set_parallelism(2)
    with pytest.raises(InvalidProgramError, match="non parallel operator 'm' must be 1"):
        mapped.set_max_parallelism(2)


def test_a_collection_is_read_by_one_subtask(env):
    with pytest.raises(InvalidProgramError, match="non parallel"):
        env.from_collection([1]).set_parallelism(2)


class Emit(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


@pytest.mark.parametrize("setter", [*SETTERS, "start_new_chain", "disable_chaining", "get_name"])
@pytest.mark.parametrize(
    ("what", "make"),
    [
        ("a union", lambda s: s.union(s)),
        ("a repartitioned stream", lambda s: s.rebalance()),
        ("a side output", lambda s: s.process(Emit()).get_side_output(OutputTag("t"))),
    ],
)
def test_settings_need_an_operator(mapped, what, make, setter):
    stream = make(mapped)
    arguments = [SETTERS[setter]] if setter in SETTERS else []
    with pytest.raises(InvalidProgramError, match=rf"{setter}\(\) applies .* {what} has none"):
        getattr(stream, setter)(*arguments)


@pytest.mark.parametrize(
    ("setter", "wrong"),
    [
        ("name", ""),
        ("name", None),
        ("uid", ""),
        ("set_uid_hash", "xyz"),
        ("set_parallelism", 0),
        ("set_max_parallelism", 40000),
        ("set_buffer_timeout", -2),
        ("set_buffer_timeout", "1"),
        ("slot_sharing_group", ""),
    ],
)
def test_wrong_values(mapped, setter, wrong):
    with pytest.raises(InvalidProgramError):
        getattr(mapped, setter)(wrong)


def test_sink_settings(env, node):
    sink = env.from_sequence(1, 2).print()
    result = (
        sink.name("out")
        .uid("u")
        .set_parallelism(1)
        .set_description("d")
        .disable_chaining()
        .slot_sharing_group("g")
    )
    assert result is sink
    out = node("Sink: out")
    assert (out.uid, out.parallelism, out.description) == ("u", 1, "d")
    assert (out.slot_sharing_group, out.chaining) == ("g", ChainingStrategy.NEVER)
    sink.set_uid_hash("0" * 32)
    assert node("Sink: out").operator_id == "0" * 32


def test_a_slot_sharing_group_is_a_name_or_a_group(env):
    stream = env.from_collection([1]).map(str)
    with pytest.raises(InvalidProgramError, match=r"expects the name of a group .* but got 5"):
        stream.slot_sharing_group(5)
