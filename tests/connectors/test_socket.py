from __future__ import annotations

import socket
import time
from contextlib import contextmanager

import pytest

from firesteel.connectors.socket import SocketTextStreamSource
from firesteel.datastream.connectors.base import Boundedness, ReaderContext


@contextmanager
def _listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        yield server, server.getsockname()[1]


def _reader(port, **options):
    source = SocketTextStreamSource("127.0.0.1", port, **options)
    reader = source.create_reader(ReaderContext(0, 1))
    reader.add_splits(source.create_enumerator(1).discover_splits())
    return reader


def _read(reader, count, limit=100):
    deadline = time.monotonic() + 100
    texts: list[str] = []
    while len(texts) < count:
        assert time.monotonic() < deadline
        texts += reader.read(limit)
        time.sleep(min(reader.next_read_delay(), 0.05))
    return texts


def _read_to_end(reader, limit=100):
    deadline = time.monotonic() + 100
    texts: list[str] = []
    while reader.snapshot_splits():
        assert time.monotonic() < deadline
        texts += reader.read(limit)
        time.sleep(min(reader.next_read_delay(), 0.05))
    return texts


def test_texts_until_the_server_closes():
    with _listening() as (server, port):
        reader = _reader(port)
        assert reader.read(10) == []
        connection, _ = server.accept()
        connection.sendall("grün\r\nb\n\nhal".encode())
        assert _read(reader, 3) == ["grün", "b", ""]
        assert reader.read(10) == []
        connection.sendall(b"f\nlast")
        connection.close()
        assert _read_to_end(reader) == ["half", "last"]


def test_the_limit_holds_and_nothing_waits():
    with _listening() as (server, port):
        reader = _reader(port)
        reader.read(1)
        connection, _ = server.accept()
        connection.sendall(b"".join(b"%d\n" % i for i in range(100)))
        connection.close()
        texts: list[str] = []
        while reader.snapshot_splits():
            batch = reader.read(7)
            assert len(batch) <= 7
            texts += batch
        assert texts == [str(i) for i in range(100)]
    began = time.monotonic()
    assert reader.read(1) == []
    assert time.monotonic() - began < 5


def test_delimiters_of_several_characters_across_packets():
    with _listening() as (server, port):
        reader = _reader(port, delimiter="||")
        reader.read(1)
        connection, _ = server.accept()
        connection.sendall(b"a|")
        time.sleep(0.05)
        assert reader.read(10) == []
        connection.sendall(b"|b\r||\n||")
        assert _read(reader, 3) == ["a", "b\r", "\n"]
        connection.close()
        assert _read_to_end(reader) == []


def test_reconnects_as_often_as_asked(monkeypatch):
    monkeypatch.setattr("firesteel.connectors.socket._RETRY_DELAY", 0.01)
    with _listening() as (server, port):
        reader = _reader(port, max_retry=2)
        reader.read(1)
        first, _ = server.accept()
        first.sendall(b"one\ntw")
        first.close()
        assert _read(reader, 1) == ["one"]
        deadline = time.monotonic() + 100
        server.settimeout(0.01)
        second = None
        while second is None:
            assert time.monotonic() < deadline
            assert reader.read(10) == []
            try:
                second, _ = server.accept()
            except TimeoutError:
                continue
        second.sendall(b"o\nthree\n")
        second.close()
        assert _read_to_end(reader) == ["two", "three"]


def test_no_server_is_a_clear_error():
    with _listening() as (_, port):
        pass
    with pytest.raises(ConnectionError, match=rf"127\.0\.0\.1:{port}.*must listen"):
        _reader(port).read(1)


def test_facts():
    source = SocketTextStreamSource("localhost", 9999)
    assert not source.replayable
    assert source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    assert len(source.create_enumerator(8).discover_splits()) == 1


@pytest.mark.parametrize("options", [{"port": 0}, {"delimiter": ""}, {"max_retry": -2}])
def test_wrong_arguments(options):
    with pytest.raises(ValueError, match=r".+"):
        SocketTextStreamSource(**{"hostname": "localhost", "port": 1, **options})
