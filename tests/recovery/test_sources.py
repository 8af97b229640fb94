"""Each source under interruptions: the rows of docs/delivery-guarantees.md."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import WatermarkStrategy
from firesteel.datastream.connectors.datagen import DataGeneratorSource
from firesteel.datastream.connectors.file_system import FileSource, StreamFormat
from firesteel.testing import JobHarness, ListSink, ScriptedSource
from tests.recovery.jobs import INTERRUPTIONS, RESTARTS, run_with_interruptions

NO_WATERMARKS = WatermarkStrategy.no_watermarks()
COUNT = 90


def of_files(env: Any, directory: Path) -> Any:
    """Some small files and a larger one."""
    bounds = [0, 5, 11, 30, COUNT]
    for number, (start, end) in enumerate(pairwise(bounds)):
        text = "".join(f"{value}\n" for value in range(start, end))
        (directory / f"{number}.txt").write_text(text)
    source = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), str(directory)
    ).build()
    return env.from_source(source, NO_WATERMARKS, "files").map(int)


def generated(env: Any, directory: Path) -> Any:
    return env.from_source(DataGeneratorSource(lambda n: n, COUNT), NO_WATERMARKS, "generated")


SOURCES: dict[str, Callable[[Any, Path], Any]] = {
    "from_collection": lambda env, _: env.from_collection(range(COUNT)),
    "from_sequence": lambda env, _: env.from_sequence(0, COUNT - 1),
    "DataGeneratorSource": generated,
    "FileSource": of_files,
    "a Source of one's own": lambda env, _: env.from_source(
        ScriptedSource(range(COUNT)), NO_WATERMARKS, "own"
    ),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("ends", INTERRUPTIONS)
def test_each_record_once(tmp_path: Path, name: str, ends: str) -> None:
    """Tasks are lost as well, between the crashes."""
    sink = ListSink(tmp_path / "sink")
    files = tmp_path / "files"
    files.mkdir()

    def program(env: Any) -> None:
        SOURCES[name](env, files).rebalance().sink_to(sink)

    run_with_interruptions(program, ends, seed=len(name))
    assert Counter(sink.values()) == Counter(range(COUNT))


def test_what_a_socket_gave_since_the_checkpoint_is_lost(tmp_path: Path) -> None:
    """At most once: a server does not send again. What came before the checkpoint counts once."""
    sink = ListSink(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)

        def program(env: Any) -> None:
            texts = env.socket_text_stream("127.0.0.1", server.getsockname()[1])
            texts.print()
            texts.sink_to(sink)

        def connect() -> socket.socket:
            harness.run_epoch()
            return server.accept()[0]

        def read(connection: socket.socket, *texts: str) -> None:
            connection.sendall("".join(f"{text}\n" for text in texts).encode())
            while harness.printed[-1:] != [texts[-1]]:
                harness.run_epoch()

        harness = JobHarness(program, checkpoint_every=0, configuration=RESTARTS)
        with connect() as connection:
            read(connection, "a", "b")
            harness.checkpoint()
            read(connection, "c", "d")
            harness.crash()
        with connect() as connection:
            read(connection, "e")
        harness.run()
    assert sink.values() == ["a", "b", "e"]
