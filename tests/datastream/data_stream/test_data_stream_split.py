import pytest

from firesteel.common import Types
from firesteel.datastream import OutputSelector
from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_specs import SelectSpec


def parity(value):
    return ["even" if value % 2 == 0 else "odd"]


class Parity(OutputSelector):
    def select(self, value):
        return parity(value)


def test_select(env, node):
    split = env.from_sequence(1, 10).split(parity)
    assert split.select("even", "odd").get_type() == Types.LONG()
    assert node("Select").spec == SelectSpec(parity, frozenset({"even", "odd"}))


def test_output_selector(env, node):
    selector = Parity()
    env.from_sequence(1, 10).split(selector).select("even")
    spec = node("Select").spec
    assert spec.selector(2) == ["even"]
    assert spec.functions == (selector,)


def test_selects_are_independent(env):
    split = env.from_sequence(1, 10).split(parity)
    split.select("even").print()
    split.select("odd").print()
    assert [vertex.name for vertex in env._compile().job_graph.vertices] == [
        (
            "Source: Sequence Source -> (Select -> Sink: Print to Std. Out, "
            "Select -> Sink: Print to Std. Out)"
        )
    ]


def test_mistakes(env):
    numbers = env.from_sequence(1, 10)
    with pytest.raises(TypeError, match="split expects an OutputSelector or a callable"):
        numbers.split(["even"])
    with pytest.raises(InvalidProgramError, match="at least one output"):
        numbers.split(parity).select()
    with pytest.raises(InvalidProgramError, match="expects names"):
        numbers.split(parity).select(1)
