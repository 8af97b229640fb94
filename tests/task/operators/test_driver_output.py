import pytest

from firesteel.common import Row, Types
from firesteel.errors import UserFunctionError
from firesteel.testing import OperatorHarness


@pytest.mark.parametrize(
    ("identifier", "parallelism", "subtask", "line"),
    [
        (None, 1, 0, "hi"),
        ("log", 1, 0, "log> hi"),
        (None, 2, 1, "2> hi"),
        ("log", 3, 0, "log:1> hi"),
    ],
)
def test_the_prefix_has_identifier_and_subtask(identifier, parallelism, subtask, line):
    with OperatorHarness.of(
        lambda s: s.print(identifier), parallelism=parallelism, subtask=subtask
    ) as harness:
        harness.process_element("hi")
        assert harness.printed == [line]


@pytest.mark.parametrize(
    ("value", "type_info", "text"),
    [
        (("a", 1), None, "('a', 1)"),
        (1.5, None, "1.5"),
        (None, None, "None"),
        (("a", 1), Types.TUPLE([Types.STRING(), Types.INT()]), "(a,1)"),
        (Row("a", True), Types.ROW([Types.STRING(), Types.BOOLEAN()]), "+I[a,True]"),
        ([1, 2], Types.LIST(Types.INT()), "[1, 2]"),
    ],
)
def test_typed_values_print_as_in_pyflink(value, type_info, text):
    types = [] if type_info is None else [type_info]
    with OperatorHarness.of(lambda s: s.print(), input_types=types) as harness:
        harness.process_element(value)
        assert harness.printed == [text]


def test_every_record_is_a_line_and_nothing_goes_on():
    with OperatorHarness.of(lambda s: s.print()) as harness:
        harness.process_elements(["a", "b"])
        harness.process_element("c")
        assert harness.printed == ["a", "b", "c"]
        assert harness.output == []


def test_a_text_that_cannot_be_made_names_the_record():
    class Silent:
        def __str__(self):
            raise ValueError("no text")

        def __repr__(self):
            return "a silent one"

    harness = OperatorHarness.of(lambda s: s.print())
    with pytest.raises(UserFunctionError, match="no text") as caught:
        harness.process_elements(["a", Silent()])
    assert caught.value.record == "a silent one"
