"""Keys and values keep their types on every backend and in every segment."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firesteel.common import Row, Types
from firesteel.errors import TypeMismatchError
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.changelog import SegmentStore
from firesteel.state.segment_format import decode_column, encode_column
from firesteel.state.table_descriptions import IncompatibleStateError
from firesteel.state.tables import MISSING
from tests.state.backends.subtask_state import SubtaskState
from tests.thoroughness import examples

Create = Callable[..., KeyedStateBackend]


class Point(NamedTuple):
    x: int
    y: int


class Color(enum.Enum):
    RED = 1


KEYS = [
    0,
    -1,
    2**80,
    1.5,
    7.0,
    True,
    None,
    "",
    "text\x00with zero",
    b"\x00\xff",
    (),
    ("a", (1, None)),
    Point(1, 2),
    Row(name="a", age=3),
    Row("b", 4),
    Color.RED,
    frozenset({1, 2}),
    decimal.Decimal("0.1"),
    dt.date(2024, 2, 29),
    dt.time(12, 30),
    dt.datetime(2024, 2, 29, 12, 30),  # noqa: DTZ001
    dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.timezone(dt.timedelta(hours=1))),
    dt.timedelta(days=1, microseconds=1),
    uuid.UUID(int=7),
]


@pytest.mark.parametrize("full", [False, True], ids=["log", "full"])
def test_every_kind_of_key_comes_back_as_it_was(create: Create, tmp_path: Path, full: bool) -> None:
    state = SubtaskState(create, tmp_path, inline_threshold=0 if full else 1 << 20)

    def fill(backend: KeyedStateBackend, mark: str) -> None:
        for number, key in enumerate(KEYS):
            backend.value_table("v").put(key, (mark, number))
            backend.value_table("w", namespaced=True).put((key, (5, number)), mark)
            backend.list_table("l").append(key, mark)
            backend.map_table("m").put(key, key, mark)

    fill(state.backend, "one")
    state.end_epoch()
    state.wait_for_snapshot()
    fill(state.backend, "two")
    state.end_epoch()
    assert any(segment.full for segment in state.segments()) is full
    state.crash()
    tables = state.backend.snapshot()
    assert list(map(repr, tables["v"])) != []
    assert sorted(map(repr, tables["v"])) == sorted(map(repr, KEYS))
    assert sorted(map(repr, (key for key, _ in tables["w"]))) == sorted(map(repr, KEYS))
    for number, key in enumerate(KEYS):
        assert state.backend.value_table("v").get(key) == ("two", number)
        assert state.backend.value_table("w", namespaced=True).get((key, (5, number))) == "two"
        assert state.backend.list_table("l").get(key) == ["one", "two"]
        ((entry, value),) = state.backend.map_table("m").entries(key)
        assert (repr(entry), value) == (repr(key), "two")


def test_equal_keys_are_one_key(create: Create) -> None:
    backend = create()
    values = backend.value_table("v")
    values.put(1, "one")
    backend.seal(1, SegmentStore(None, 1 << 20))
    backend.confirm()
    assert [values.get(key) for key in (1, 1.0, True, decimal.Decimal(1))] == ["one"] * 4
    values.put(1.0, "other")
    backend.seal(2, SegmentStore(None, 1 << 20))
    backend.confirm()
    assert len(values) == 1
    values.put(Point(1, 2), "point")
    assert values.get((1, 2)) == "point"


class Box:
    """An object that is no key, but may be the name of a map's entry."""

    def __init__(self, content: int) -> None:
        self.content = content

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and other.content == self.content

    def __hash__(self) -> int:
        return hash(self.content)


def test_entries_of_a_map_may_be_any_object(create: Create) -> None:
    state = SubtaskState(create)
    state.backend.map_table("m").put("key", Box(1), "one")
    state.backend.map_table("m").put("key", float("nan"), "nan")
    state.end_epoch()
    state.crash()
    maps = state.backend.map_table("m")
    assert maps.get("key", Box(1)) == "one"
    maps.remove_entry("key", Box(1))
    state.end_epoch()
    state.crash()
    assert state.backend.map_table("m").get("key", Box(1)) is MISSING


TYPED = [
    (Types.LONG(), [1, -(2**63), 2**63 - 1, None]),
    (Types.STRING(), ["", "text", "\x00", None]),
    (Types.STRING(), ["lone surrogate \ud800"]),
    (Types.BOOLEAN(), [True, False]),
    (Types.DOUBLE(), [1.5, 2.0, float("inf")]),
    (Types.FLOAT(), [1.5, 0.25]),
    (Types.BIG_INT(), [2**200]),
    (Types.BIG_DEC(), [decimal.Decimal("1.10")]),
    (Types.SQL_DATE(), [dt.date(2024, 2, 29)]),
    (Types.SQL_TIME(), [dt.time(12, 30, 1, 5000)]),
    (Types.SQL_TIMESTAMP(), [dt.datetime(2024, 2, 29, 12, 30)]),  # noqa: DTZ001
    (Types.TUPLE([Types.STRING(), Types.LONG()]), [("a", 1), ("b", 2), None]),
    (
        Types.ROW_NAMED(["name", "tags"], [Types.STRING(), Types.LIST(Types.LONG())]),
        [Row(name="a", tags=[1, 2]), Row(name=None, tags=None), None],
    ),
    (Types.LIST(Types.STRING()), [["a"], [], ["b", "c"]]),
    (Types.MAP(Types.STRING(), Types.LONG()), [{"a": 1, "b": None}, {}, None]),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), [b"bytes", b""]),
    (Types.PRIMITIVE_ARRAY(Types.LONG()), [[1, 2], []]),
    (Types.BASIC_ARRAY(Types.STRING()), [["a", None]]),
    (Types.OBJECT_ARRAY(Types.TUPLE([Types.LONG()])), [[(1,), None]]),
    (Types.PICKLED_BYTE_ARRAY(), [{"any": {"thing"}}]),
]


@pytest.mark.parametrize(("type_info", "values"), TYPED, ids=str)
def test_typed_values_come_back_as_they_were(
    create: Create, type_info: Any, values: list[Any]
) -> None:
    state = SubtaskState(create)
    for number, value in enumerate(values):
        state.backend.value_table("v", element_type=type_info).put(number, value)
        state.backend.list_table("l", element_type=type_info).extend("key", [value, value])
        state.backend.map_table("m", element_type=type_info).put("key", number, value)
    state.end_epoch()
    state.crash()
    stored = state.backend.snapshot()
    expected = dict(enumerate(values))
    assert repr(dict(sorted(stored["v"].items()))) == repr(expected)
    assert repr(stored["l"]["key"]) == repr([value for v in values for value in (v, v)])
    assert repr(dict(sorted(stored["m"]["key"].items()))) == repr(expected)


@pytest.mark.parametrize(
    ("type_info", "values"), [case for case in TYPED if case[0] != Types.PICKLED_BYTE_ARRAY()]
)
def test_a_known_type_needs_no_pickle_unless_values_demand_it(
    type_info: Any, values: list[Any]
) -> None:
    encoding, payload = encode_column(values, type_info)
    exceptions = (Types.BIG_INT(), Types.BIG_DEC())
    pickled = type_info in exceptions or "surrogate" in str(values[0])
    assert encoding == ("pickle" if pickled else "arrow")
    assert repr(decode_column(encoding, payload, type_info)) == repr(values)


def test_values_are_converted_to_their_type_at_the_end_of_the_epoch(create: Create) -> None:
    state = SubtaskState(create)
    pair = Types.TUPLE([Types.STRING(), Types.LONG()])
    state.backend.value_table("v", element_type=pair).put("key", ["a", True])
    state.backend.list_table("l", element_type=pair).append("key", ["a", True])
    state.backend.map_table("m", entry_type=Types.LONG(), element_type=pair).put(
        "key", 1.0, ["a", True]
    )
    state.end_epoch()
    for _ in range(2):
        stored = state.backend.snapshot()
        assert stored == {
            "v": {"key": ("a", 1)},
            "l": {"key": [("a", 1)]},
            "m": {"key": {1: ("a", 1)}},
        }
        assert type(stored["v"]["key"][1]) is int
        state.crash()


def test_a_value_of_the_wrong_type_is_refused_with_the_name_of_its_state(create: Create) -> None:
    backend = create()
    backend.value_table("counts", element_type=Types.LONG()).put("key", "many")
    with pytest.raises(TypeMismatchError, match=r"'many'.*Long.*state 'counts'"):
        backend.seal(1, SegmentStore(None, 0))


@pytest.mark.parametrize(
    "ask",
    [
        lambda b: b.value_table("s"),
        lambda b: b.value_table("s", element_type=Types.STRING()),
        lambda b: b.value_table("s", element_type=Types.LONG(), namespaced=True),
        lambda b: b.value_table("s", element_type=Types.STRING(), ttl=True),
        lambda b: b.list_table("s", element_type=Types.LONG()),
        lambda b: b.map_table("s", element_type=Types.LONG()),
    ],
)
def test_a_state_that_is_not_what_it_was_is_refused_by_name(
    create: Create, tmp_path: Path, ask: Any
) -> None:
    state = SubtaskState(create, tmp_path)
    state.backend.value_table("s", element_type=Types.LONG()).put("key", 1)
    state.end_epoch()
    state.wait_for_snapshot()
    state.end_epoch()
    # Asked for after the restore, as functions do, and before it, as operators do.
    state.crash()
    with pytest.raises(IncompatibleStateError, match="state 's' exists as a value state of Long"):
        ask(state.backend)
    other = create()
    ask(other)
    with pytest.raises(IncompatibleStateError, match="'s'"):
        other.restore(state.segments(), state.store)


_CONTENTS = st.dictionaries(
    st.one_of(st.integers(0, 9), st.floats(0, 3)),
    st.lists(st.integers(-99, 99), min_size=1, max_size=4),
    max_size=8,
)


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    contents=_CONTENTS,
    kind=st.sampled_from(["value", "list", "map"]),
    namespaced=st.booleans(),
    history=st.lists(st.booleans(), min_size=2, max_size=4),
    chunk=st.sampled_from([1, 3, 1000]),
)
def test_a_time_to_live_comes_and_goes_with_a_restore(
    create: Create,
    contents: dict[Any, list[int]],
    kind: str,
    namespaced: bool,
    history: list[bool],
    chunk: int,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("firesteel.state.backend.CHUNK_ENTRIES", chunk)
        state = SubtaskState(create)
        now = 0
        for number, ttl in enumerate(history):
            if number == 0 or ttl is not history[number - 1]:
                now = 100 * number
            ask = getattr(state.backend, f"{kind}_table")
            table = ask("s", namespaced=namespaced, element_type=Types.LONG(), ttl=ttl, now=now)

            def element(bare: int, ttl: bool = ttl, now: int = now) -> Any:
                return (bare, now) if ttl else bare

            expected: dict[Any, Any] = {}
            for bare_key, values in contents.items():
                key = (bare_key, "window") if namespaced else bare_key
                elements = list(map(element, values))
                if number == 0 and kind == "value":
                    table.put(key, elements[-1])
                elif number == 0 and kind == "list":
                    table.extend(key, elements)
                elif number == 0:
                    for entry, one in enumerate(elements):
                        table.put(key, entry, one)
                shapes = {
                    "value": elements[-1],
                    "list": elements,
                    "map": dict(enumerate(elements)),
                }
                expected[key] = shapes[kind]
            assert state.backend.snapshot() == {"s": expected}
            state.end_epoch()
            state.crash()


def test_state_that_nobody_asks_for_any_more_is_carried_on(create: Create) -> None:
    state = SubtaskState(create)
    state.backend.value_table("old").put("key", 1)
    state.end_epoch()
    state.crash()
    assert state.backend.declared() == frozenset()
    state.backend.value_table("new").put("key", 2)
    state.end_epoch()
    state.crash()
    assert state.backend.snapshot() == {"old": {"key": 1}, "new": {"key": 2}}
