"""Benchmark cases as plain data and pure functions, shared by all peers.

A case starts from the numbers 0 to n-1 and ends in a sink that is called once per result. This
module imports only the standard library, because peers run in their own environments.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

Function = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One pipeline.

    `records` is the size of the large run of a fast peer, about ten seconds or some epochs.
    """

    name: str
    title: str
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFilter(Case):
    """`numbers.map(make).filter(keep)`: one chain, no exchange."""

    make: Function
    keep: Function


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce(Case):
    """`numbers.key_by(key).reduce(combine)`: one result per record.

    `key` returns the number modulo `keys`.
    """

    keys: int
    key: Function
    combine: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(Case):
    """`numbers.map(make).key_by(key).sum(1)`."""

    make: Function
    key: Function


@dataclass(frozen=True, slots=True, kw_only=True)
class Union(Case):
    """`first_half.map(make).union(second_half.map(other)).map(then)`."""

    make: Function
    other: Function
    then: Function


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOut(Case):
    """`numbers.map(make)`, followed by a map and a sink per branch."""

    make: Function
    branches: tuple[Function, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedMap(Case):
    """`numbers.map(make).key_by(key).map(then)`: the cost of an exchange for a kind of record."""

    make: Function
    key: Function
    then: Function


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCount(Case):
    """`numbers.map(make).key_by(key).window(tumbling).aggregate(count)`.

    One result per key and window.
    """

    make: Function
    key: Function
    window_millis: int


class Timeline:
    """The event time of a number.

    Both halves of the numbers cover the same span of time, because sources read them in parallel.
    """

    def __init__(self, records: int) -> None:
        self.half = max(1, records // 2)

    def of(self, number: int) -> int:
        return number % self.half // 10


def triple(number: int) -> int:
    return number * 3 + 1


def is_even(number: int) -> bool:
    return number % 2 == 0


def add(left: int, right: int) -> int:
    return left + right


def add_one(number: int) -> int:
    return number + 1


def subtract_one(number: int) -> int:
    return number - 1


def double(number: int) -> int:
    return number * 2


def negate(number: int) -> int:
    return -number


def modulo_thousand(number: int) -> int:
    return number % 1_000


def modulo_two_thousand(number: int) -> int:
    return number % 2_000


def modulo_million(number: int) -> int:
    return number % 1_000_000


def pair(number: int) -> tuple[int, int]:
    return (number % 1_000, number)


def first_field(row: tuple[Any, ...]) -> Any:
    return row[0]


def wide_row(number: int) -> tuple[Any, ...]:
    """Return 20 fields: numbers, floats, flags, short strings and None."""
    text = str(number)
    ratio = number / 7
    return (
        number % 1_000,
        number,
        number + 1,
        number + 2,
        number + 3,
        number * 31,
        number * 37,
        number & 255,
        ratio,
        ratio + 1.0,
        ratio * 2.0,
        ratio - 0.5,
        number % 2 == 0,
        number % 3 == 0,
        text,
        "customer-" + text,
        "order-" + text,
        "open",
        "EUR",
        None,
    )


def add_second_field(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    return (left[0], left[1] + right[1])


def second_field(row: tuple[Any, ...]) -> Any:
    return row[1]


_PADDING = "".join(chr(ord("a") + position % 26) for position in range(1_014))


def long_text(number: int) -> str:
    """Return a string of 1,024 characters, different for every number."""
    return f"{number:010d}{_PADDING}"


def text_key(text: str) -> int:
    return int(text[7:10])


CASES: tuple[Case, ...] = (
    MapFilter(
        name="map_filter",
        title="map + filter",
        records=160_000_000,
        make=triple,
        keep=is_even,
    ),
    Reduce(
        name="reduce_1k",
        title="key_by + reduce, 1,000 keys",
        records=40_000_000,
        keys=1_000,
        key=modulo_thousand,
        combine=add,
    ),
    Reduce(
        name="reduce_1m",
        title="key_by + reduce, 1,000,000 keys",
        records=40_000_000,
        keys=1_000_000,
        key=modulo_million,
        combine=add,
    ),
    Sum(
        name="sum_tuples",
        title="sum on tuples",
        records=30_000_000,
        make=pair,
        key=first_field,
    ),
    Union(
        name="union",
        title="union of 2",
        records=160_000_000,
        make=add_one,
        other=subtract_one,
        then=double,
    ),
    FanOut(
        name="fan_out",
        title="fan-out to 3 sinks",
        records=50_000_000,
        make=add_one,
        branches=(double, triple, negate),
    ),
    KeyedMap(
        name="wide_rows",
        title="rows of 20 fields, key_by + map",
        records=8_000_000,
        make=wide_row,
        key=first_field,
        then=second_field,
    ),
    KeyedMap(
        name="strings_1kb",
        title="strings of 1 kB, key_by + map",
        records=6_000_000,
        make=long_text,
        key=text_key,
        then=len,
    ),
    WindowCount(
        name="tumbling_1k",
        title="tumbling window count, 1,000 keys",
        records=24_000_000,
        make=pair,
        key=first_field,
        window_millis=10_000,
    ),
)

BY_NAME: dict[str, Case] = {case.name: case for case in CASES}


def for_checking(case: Case) -> Case:
    """Return a variant of the case whose keys repeat, so that few records call every function."""
    if isinstance(case, Reduce) and case.keys > 2_000:
        return replace(case, keys=2_000, key=modulo_two_thousand)
    return case


class CountingSink:
    """The sink of every timed run. It is called once per result."""

    def __init__(self) -> None:
        self.count = 0

    def invoke(self, value: Any, context: Any = None) -> None:
        self.count += 1


@dataclass(slots=True)
class Outcome:
    """The expected results of a checked run: their number, the largest one, and their sum.

    The results of a rolling reduction, and therefore their sum, depend on the order of arrival.
    Their number and the largest result, which is the last one of its key, do not.
    """

    count: int = 0
    largest: int | None = None
    total: int = 0

    def add(self, value: Any) -> None:
        number = fingerprint(value)
        self.count += 1
        self.total += number
        if self.largest is None or number > self.largest:
            self.largest = number

    def merge(self, others: Iterable["Outcome"]) -> "Outcome":
        for other in others:
            self.count += other.count
            self.total += other.total
            if other.largest is not None and (self.largest is None or other.largest > self.largest):
                self.largest = other.largest
        return self

    def agrees(self, wanted: "Outcome", case: Case) -> bool:
        if isinstance(case, Reduce | Sum):
            return (self.count, self.largest) == (wanted.count, wanted.largest)
        return self == wanted


def fingerprint(value: Any) -> int:
    return int(value[1]) if isinstance(value, tuple | list) else int(value)


def results(case: Case, records: int) -> Iterator[Any]:
    """Compute the case in a plain loop. The results of every peer must agree with it."""
    numbers = range(records)
    match case:
        case MapFilter():
            return filter(case.keep, map(case.make, numbers))
        case Reduce():
            return rolling(numbers, case.key, case.combine)
        case Sum():
            return rolling(map(case.make, numbers), case.key, add_second_field)
        case Union():
            half = records // 2
            united = chain(map(case.make, numbers[:half]), map(case.other, numbers[half:]))
            return map(case.then, united)
        case FanOut():
            made = map(case.make, numbers)
            return (branch(record) for record in made for branch in case.branches)
        case KeyedMap():
            return map(case.then, map(case.make, numbers))
        case WindowCount():
            timeline = Timeline(records)
            windows = Counter(
                (case.key(case.make(number)), timeline.of(number) // case.window_millis)
                for number in numbers
            )
            return iter(windows.values())
    raise TypeError(f"{case.name} is of an unknown shape, {type(case).__name__}")


def rolling(
    values: Iterable[Any], key: Function, combine: Callable[[Any, Any], Any]
) -> Iterator[Any]:
    state: dict[Any, Any] = {}
    for value in values:
        group = key(value)
        state[group] = combine(state[group], value) if group in state else value
        yield state[group]


def expected(case: Case, records: int) -> Outcome:
    outcome = Outcome()
    for value in results(case, records):
        outcome.add(value)
    return outcome


def result_count(case: Case, records: int) -> int:
    """Return the number of results without running the case."""
    match case:
        case MapFilter():
            # The filter repeats with a period of two numbers.
            kept = [start for start in range(2) if case.keep(case.make(start))]
            return sum(len(range(start, records, 2)) for start in kept)
        case FanOut():
            return records * len(case.branches)
        case WindowCount():
            return window_count(case, records)
    return records


def window_count(case: WindowCount, records: int) -> int:
    """Count the keys of all windows.

    Keys repeat every thousand numbers, so the first thousand numbers of each half have all keys.
    """
    half = Timeline(records).half
    width = case.window_millis * 10
    count = 0
    for start in range(0, half, width):
        shown = range(start, min(start + 1_000, start + width, half))
        numbers = chain(shown, (half + position for position in shown))
        count += len({case.key(case.make(number)) for number in numbers if number < records})
    return count
