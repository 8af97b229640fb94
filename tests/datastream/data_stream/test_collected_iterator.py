import pytest

from firesteel.datastream import CloseableIterator


def test_iterates_and_closes_once():
    closed = []
    with CloseableIterator(iter([1, 2]), lambda: closed.append(1)) as results:
        assert results.next() == 1
        assert next(results) == 2
        with pytest.raises(StopIteration):
            results.next()
    results.close()
    assert closed == [1]


def test_closes_on_an_error_too():
    closed = []
    with (
        pytest.raises(RuntimeError, match="user"),
        CloseableIterator(iter([1]), lambda: closed.append(1)),
    ):
        raise RuntimeError("user")
    assert closed == [1]


def test_nothing_comes_after_close():
    results = CloseableIterator(iter([1, 2]))
    results.close()
    assert list(results) == []
