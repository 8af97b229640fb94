from __future__ import annotations

import gc
import os
import tracemalloc
from itertools import chain

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.connectors.collection import CollectionSource
from firesteel.datastream.connectors.base import ReaderContext


def _generator(n):
    yield from range(n)


@pytest.mark.parametrize(
    "elements",
    [
        list(range(20_000)),
        tuple(range(20_000)),
        range(20_000),
        range(40_000, 0, -2),
        _generator(20_000),
        dict.fromkeys(range(20_000)),
        iter([{"a": 1}, None, "x", (1, 2)]),
        "text",
    ],
    ids=lambda elements: type(elements).__name__,
)
def test_any_iterable_keeps_its_order(driver, elements):
    expected = list(elements) if not hasattr(elements, "__next__") else None
    if expected is None:
        elements = list(elements)
        expected = elements
        elements = iter(elements)
    assert driver.read_all(CollectionSource(elements), limit=8192) == [expected]


def test_parallel_readers_share_the_elements(driver):
    parts = driver.read_all(CollectionSource(list(range(20_001))), parallelism=3, limit=4096)
    assert [len(part) for part in parts] == [6667, 6667, 6667]
    assert list(chain.from_iterable(parts)) == list(range(20_001))


def test_an_empty_collection_has_no_splits(driver):
    assert driver.read_all(CollectionSource([]), parallelism=2) == [[], []]
    assert driver.read_all(CollectionSource(iter(()))) == [[]]


def test_an_iterator_is_consumed_once(driver):
    elements = iter(range(10))
    source = CollectionSource(elements)
    assert next(elements, None) is None
    assert driver.read_all(source) == driver.read_all(source) == [list(range(10))]


def test_a_list_is_read_as_it_was_when_the_source_was_made(driver):
    elements = [1, 2]
    first = CollectionSource(elements)
    elements.append(3)
    second = CollectionSource(elements)
    elements[:] = [9]
    assert driver.read_all(first) == [[1, 2]]
    assert driver.read_all(cloudpickle.loads(cloudpickle.dumps(second))) == [[1, 2, 3]]


def test_the_elements_of_a_list_are_not_held_twice_and_a_range_stays_a_range():
    elements = ["x" * 100 for _ in range(100_000)]
    tracemalloc.start()
    # Kept while it is measured.
    held = CollectionSource(elements)
    pointers, _ = tracemalloc.get_traced_memory()
    assert len(held) == 100_000
    assert pointers < 1_000_000
    tracemalloc.reset_peak()
    before = pointers
    source = CollectionSource(range(10**12))
    shipped = cloudpickle.dumps(source)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - before < 200_000
    assert len(shipped) < 1000
    assert len(cloudpickle.loads(shipped)) == 10**12


@pytest.mark.parametrize("as_iterator", [False, True])
def test_large_collections_go_through_a_file_that_the_source_owns(driver, tmp_path, as_iterator):
    elements = [f"element {i}" for i in range(50_000)]
    source = CollectionSource(
        iter(elements) if as_iterator else elements,
        scratch_directory=str(tmp_path),
        spill_bytes=100_000,
    )
    assert driver.read_all(source, parallelism=2, limit=5000) == [
        elements[:25_000],
        elements[25_000:],
    ]
    assert len(cloudpickle.dumps(source)) < 2000
    assert len(os.listdir(tmp_path)) == 1
    del source
    gc.collect()
    assert os.listdir(tmp_path) == []


def test_a_failing_iterator_leaves_no_file(tmp_path):
    def failing():
        yield from ("x" * 100 for _ in range(50_000))
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        CollectionSource(failing(), scratch_directory=str(tmp_path), spill_bytes=1000)
    assert os.listdir(tmp_path) == []


def test_elements_of_local_classes_travel(driver):
    class Event:
        def __init__(self, name):
            self.name = name

    (records,) = driver.read_all(CollectionSource([Event("a"), Event("b")]))
    assert [event.name for event in records] == ["a", "b"]


def test_records_handed_out_are_lists_of_their_own():
    elements = [1, 2, 3]
    source = CollectionSource(elements)
    reader = source.create_reader(ReaderContext(0, 1))
    reader.add_splits(source.create_enumerator(1).discover_splits())
    records = reader.read(10)
    assert isinstance(records, list)
    records.clear()
    assert elements == [1, 2, 3]


@given(st.integers(0, 60), st.integers(1, 5), st.lists(st.integers(0, 9)), st.booleans())
def test_restarts_neither_lose_nor_repeat(driver, size, parallelism, steps, pickled):
    source = CollectionSource(list(range(size)))
    splits = list(source.create_enumerator(parallelism).discover_splits())
    shipped = cloudpickle.loads(cloudpickle.dumps(source)) if pickled else source
    records = driver.read_with_restarts(
        lambda: shipped.create_reader(ReaderContext(0, 1)), splits, steps
    )
    assert records == list(range(size))
