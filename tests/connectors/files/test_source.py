from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
from itertools import chain, pairwise
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.common.time import Duration
from firesteel.common.typeinfo import Types
from firesteel.connectors.files.enumerator import FileSplitEnumerator
from firesteel.connectors.files.paths import FilePaths, PathNotFoundError
from firesteel.connectors.files.reader import FileReader
from firesteel.datastream.connectors.base import Boundedness, ReaderContext, SourceSplit
from firesteel.datastream.connectors.file_system import (
    FileEnumeratorProvider,
    FileSource,
    FileSplitAssignerProvider,
    StreamFormat,
)
from firesteel.errors import NotYetSupportedError
from firesteel.filesystems import file_systems
from firesteel.formats.lines import TextLineFormat
from tests.thoroughness import examples

_CUT = FileEnumeratorProvider.default_splittable_file_enumerator()


def _source(*paths, charset="UTF-8", enumerator=None):
    builder = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(charset), *map(str, paths)
    )
    return (builder if enumerator is None else builder.set_file_enumerator(enumerator)).build()


def _java_lines(text):
    """Split text into lines as Java's BufferedReader.readLine does."""
    return [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]


def _byte_split(path, size, start, stop):
    return SourceSplit(
        f"{path}:{start}",
        {
            "path": str(path),
            "size": size,
            "start": start,
            "stop": stop,
            "compression": None,
            "counted": False,
        },
    )


@pytest.fixture
def lines_file(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"a\nb\r\nc\rd\n\n\xc3\xa9\nend")
    return path


EXPECTED = ["a", "b", "c", "d", "", "é", "end"]


def test_a_file(driver, lines_file):
    assert driver.read_all(_source(lines_file)) == [EXPECTED]


def test_facts(lines_file):
    source = _source(lines_file)
    assert source.get_boundedness() is Boundedness.BOUNDED
    assert source.get_produced_type() == Types.STRING()
    assert source.replayable


def test_java_ends_lines_only_where_readline_does(driver, tmp_path):
    path = tmp_path / "odd.txt"
    path.write_text("a\x0bb\x0cc\x1cd\x85e\u2028f\r\r\n\n", newline="")
    assert driver.read_all(_source(path)) == [["a\x0bb\x0cc\x1cd\x85e\u2028f", "", ""]]


def test_directories_are_read_recursively_without_hidden_files(driver, tmp_path):
    for name in ("b.txt", "a.txt", "sub/c.txt", ".hidden", "_SUCCESS", ".dir/x", "_tmp/y", "empty"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("" if name == "empty" else f"{name}\n")
    (tmp_path / "sub" / "loop").symlink_to(tmp_path)
    assert driver.read_all(_source(tmp_path)) == [["a.txt", "b.txt", "sub/c.txt"]]


def test_globs_and_several_paths(driver, tmp_path):
    for name in ("1/a.log", "2/b.log", "2/c.txt", "3/.d.log"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{name}\n")
    assert driver.read_all(_source(tmp_path / "*" / "*.log")) == [["1/a.log", "2/b.log"]]
    assert driver.read_all(_source(tmp_path / "[12]")) == [["1/a.log", "2/b.log", "2/c.txt"]]
    overlapping = _source(tmp_path / "2", tmp_path / "2" / "b.log")
    assert driver.read_all(overlapping) == [["2/b.log", "2/c.txt"]]


def test_a_name_with_glob_signs_is_a_name_first(driver, tmp_path):
    path = tmp_path / "data[1].txt"
    path.write_text("x\n")
    assert driver.read_all(_source(path)) == [["x"]]


def test_file_uris_and_relative_paths(driver, lines_file, monkeypatch):
    assert driver.read_all(_source(f"file://{lines_file}")) == [EXPECTED]
    monkeypatch.chdir(lines_file.parent)
    source = _source("lines.txt")
    monkeypatch.chdir("/")
    assert driver.read_all(source) == [EXPECTED]


@pytest.mark.parametrize("name", ["nowhere.txt", "*.nothing"])
def test_a_missing_path_fails_when_the_enumerator_starts(tmp_path, name):
    with pytest.raises(PathNotFoundError, match="there is no file or directory at") as caught:
        _source(tmp_path / name).create_enumerator(1)
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.path == str(tmp_path / name)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        (".gz", gzip.compress),
        (".GZIP", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", lambda data: pa.compress(data, "zstd", asbytes=True)),
    ],
)
def test_compressed_files(driver, tmp_path, suffix, compress):
    lines = [f"line {i} ü" for i in range(20_000)]
    path = tmp_path / f"lines.txt{suffix}"
    path.write_bytes(compress("\r\n".join(lines).encode()))
    source = _source(path)
    assert driver.read_all(source, parallelism=2, limit=8192) == [lines, []]
    (split,) = source.create_enumerator(4).discover_splits()
    reader = source.create_reader(ReaderContext(0, 1))
    reader.add_splits([split.at(19_998)])
    assert driver.drain(reader) == lines[-2:]


def test_deflate_is_a_clear_error(tmp_path):
    (tmp_path / "x.deflate").write_bytes(b"x")
    with pytest.raises(NotYetSupportedError, match="deflate"):
        _source(tmp_path).create_enumerator(1).discover_splits()


@pytest.mark.parametrize(
    ("charset", "splittable"),
    [
        ("UTF-8", True),
        ("ISO-8859-1", True),
        ("windows-1252", True),
        ("GBK", True),
        ("Shift_JIS", True),
        ("UTF-16", False),
        ("UTF-16LE", False),
        ("UTF-32", False),
        ("ISO-2022-JP", False),
        ("IBM037", False),
    ],
)
def test_charsets(driver, tmp_path, charset, splittable):
    text = "日本\r\nabc\n语" if charset in {"GBK", "Shift_JIS"} else "né\r\nabc\nü"
    if charset == "Shift_JIS" or charset == "ISO-2022-JP":
        text = "日本\r\nabc\n表"
    path = tmp_path / "text.txt"
    path.write_bytes(text.encode(charset))
    assert StreamFormat.text_line_format(charset).is_splittable is splittable
    assert driver.read_all(_source(path, charset=charset)) == [text.splitlines()]


def test_utf_16_without_mark_is_big_endian_as_in_java(driver, tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("né\nx".encode("utf-16-be"))
    assert driver.read_all(_source(path, charset="UTF-16")) == [["né", "x"]]


def test_bytes_that_are_no_text_are_replaced(driver, tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"a\xff\nb\xc3\n")
    assert driver.read_all(_source(path)) == [["a\ufffd", "b\ufffd"]]
    assert driver.read_all(_source(path, charset="US-ASCII")) == [["a\ufffd", "b\ufffd"]]


def test_unknown_charset():
    with pytest.raises(ValueError, match="klingon"):
        StreamFormat.text_line_format("klingon")


def test_text_is_cut_only_if_the_program_asks_for_it(driver, tmp_path):
    lines = [f"{i:08}" for i in range(400_000)]
    path = tmp_path / "large.txt"
    path.write_text("\n".join(lines))
    assert driver.read_all(_source(path), parallelism=3, limit=8192) == [lines, [], []]
    parts = driver.read_all(_source(path, enumerator=_CUT), parallelism=3, limit=8192)
    assert list(chain.from_iterable(parts)) == lines
    assert max(map(len, parts)) - min(map(len, parts)) <= 2

    whole = (
        FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(path))
        .set_file_enumerator(FileEnumeratorProvider.default_non_splittable_file_enumerator())
        .set_split_assigner(FileSplitAssignerProvider.locality_aware_split_assigner())
        .build()
    )
    assert driver.read_all(whole, parallelism=3, limit=8192) == [lines, [], []]


def test_many_files_are_not_cut(tmp_path):
    for i in range(8):
        (tmp_path / f"{i}.txt").write_bytes(b"x" * 2_000_000)
    assert len(_source(tmp_path, enumerator=_CUT).create_enumerator(4).discover_splits()) == 8


def test_what_is_appended_after_discovery_is_left_alone(driver, lines_file):
    source = _source(lines_file)
    splits = source.create_enumerator(1).discover_splits()
    with lines_file.open("a") as file:
        file.write(" of file\nmore\n")
    reader = source.create_reader(ReaderContext(0, 1))
    reader.add_splits(splits)
    assert driver.drain(reader) == EXPECTED


def test_a_file_that_shrinks_is_an_error(driver, lines_file):
    source = _source(lines_file)
    splits = source.create_enumerator(1).discover_splits()
    lines_file.write_text("")
    reader = source.create_reader(ReaderContext(0, 1))
    reader.add_splits(splits)
    with pytest.raises(EOFError, match="shorter"):
        reader.read(10)


def _watching(path, clock, state=None):
    return FileSplitEnumerator(
        FilePaths.of((str(path),)),
        StreamFormat.text_line_format(),
        parallelism=2,
        split_files=True,
        discovery_interval=5.0,
        state=state,
        clock=clock,
    )


def test_watching_finds_new_files_in_its_interval(driver, tmp_path, clock):
    (tmp_path / "1.txt").write_text("1\n")
    enumerator = _watching(tmp_path, clock)
    assert [split.properties["path"] for split in enumerator.discover_splits()] == [
        str(tmp_path / "1.txt")
    ]
    (tmp_path / "2.txt").write_text("2\n")
    assert enumerator.discover_splits() == []
    assert enumerator.next_discovery_delay() == pytest.approx(5.0)
    clock.now += 5.0
    (split,) = enumerator.discover_splits()
    assert split.properties["path"] == str(tmp_path / "2.txt")
    assert enumerator.has_pending([split])
    assert not enumerator.has_pending([])
    assert not enumerator.is_complete()

    (tmp_path / "3.txt").write_text("3\n")
    restored = _watching(tmp_path, clock, driver.through_json(enumerator.snapshot_state()))
    assert [split.properties["path"] for split in restored.discover_splits()] == [
        str(tmp_path / "3.txt")
    ]


def test_watching_is_unbounded_and_a_glob_may_wait_for_its_first_file(tmp_path, clock):
    builder = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), str(tmp_path / "*.txt")
    ).monitor_continuously(Duration.of_millis(10))
    source = builder.build()
    assert source.get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    assert source.create_enumerator(1).discover_splits() == []
    assert builder.process_static_file_set().build().get_boundedness() is Boundedness.BOUNDED
    with pytest.raises(ValueError, match="positive"):
        builder.monitor_continuously(Duration.of_millis(0))


def test_a_restored_static_enumerator_does_not_look_again(driver, lines_file):
    source = _source(lines_file)
    enumerator = source.create_enumerator(1)
    enumerator.discover_splits()
    lines_file.unlink()
    restored = source.create_enumerator(1, driver.through_json(enumerator.snapshot_state()))
    assert restored.discover_splits() == []
    assert restored.is_complete()


def test_builder_errors(tmp_path):
    with pytest.raises(ValueError, match="path"):
        FileSource.for_record_stream_format(StreamFormat.text_line_format())
    with pytest.raises(TypeError, match="StreamFormat"):
        FileSource.for_record_stream_format("text", str(tmp_path))  # type: ignore[arg-type]  # refused
    with pytest.raises(TypeError, match="BulkFormat"):
        FileSource.for_bulk_file_format(None, str(tmp_path))  # type: ignore[arg-type]  # refused


def test_remote_file_systems_through_pyarrow(tmp_path, monkeypatch):
    """Any other scheme takes pyarrow's way; a local directory stands in for the store."""
    from pyarrow import fs

    def from_uri(uri):
        local = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
        return local, uri.removeprefix("store://")

    store = SimpleNamespace(
        FileSystem=SimpleNamespace(from_uri=from_uri),
        FileType=fs.FileType,
        FileSelector=fs.FileSelector,
    )
    monkeypatch.setattr(file_systems, "fs", store)
    for name in ("in/a.txt", "in/deep/b.txt", "in/_c.txt", "in/.d/e.txt", "in/f.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\ny\n")
    assert _names("store://in") == ["store://in/a.txt", "store://in/deep/b.txt", "store://in/f.log"]
    assert _names("store://in/") == _names("store://in")
    assert _names("store://in/*.txt") == ["store://in/a.txt"]
    assert _names("store://in/d*") == ["store://in/deep/b.txt"]
    assert _names("store://in/*/b.*") == ["store://in/deep/b.txt"]
    with pytest.raises(PathNotFoundError):
        _names("store://out")
    with pytest.raises(PathNotFoundError):
        _names("store://in/*.gz")
    source = _source("store://in/a.txt")
    reader = source.create_reader(ReaderContext(0, 1))
    reader.add_splits(source.create_enumerator(1).discover_splits())
    assert reader.read(10) == ["x", "y"]


def _names(path):
    return [status.path for status in FilePaths.of((path,)).list_files(path)]


texts = st.text(st.sampled_from("a\n\r\u00e9\u2028"), min_size=4, max_size=40)


@settings(max_examples=examples(400), deadline=None)
@given(
    texts,
    st.lists(st.integers(0, 60), max_size=6),
    st.lists(st.integers(0, 3), min_size=3, max_size=20),
    st.integers(1, 20),
)
def test_any_cut_and_any_restarts_give_each_line_once_in_order(
    driver, tmp_path_factory, text, cuts, steps, block_bytes
):
    data = text.encode()
    path = _written(tmp_path_factory, data)
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    splits = [_byte_split(path, len(data), start, stop) for start, stop in pairwise(bounds)]

    def new_reader():
        return FileReader(TextLineFormat("utf-8", block_bytes), FilePaths(()))

    assert driver.read_with_restarts(new_reader, splits, steps) == _java_lines(text)
    line_starts = _line_starts(data)
    for split in splits:
        reader = new_reader()
        reader.add_splits([split])
        begin_here = [
            start
            for start in line_starts
            if split.properties["start"] <= start < split.properties["stop"]
        ]
        assert len(driver.drain(reader, 3)) == len(begin_here)


@settings(deadline=None)
@given(texts, st.lists(st.integers(0, 5)), st.sampled_from(["gz", "utf-16"]))
def test_counted_lines_survive_any_restarts(driver, tmp_path_factory, text, steps, kind):
    charset = "utf-8" if kind == "gz" else "utf-16"
    data = text.encode(charset)
    path = _written(tmp_path_factory, gzip.compress(data) if kind == "gz" else data)
    compression = "gzip" if kind == "gz" else None
    size = path.stat().st_size
    properties = {"path": str(path), "size": size, "start": 0, "stop": size}
    properties |= {"compression": compression, "counted": True}

    def new_reader():
        return FileReader(StreamFormat.text_line_format(charset), FilePaths(()))

    records = driver.read_with_restarts(new_reader, [SourceSplit("s", properties)], steps)
    assert records == _java_lines(text)


def _written(tmp_path_factory, data: bytes) -> Path:
    path = Path(tmp_path_factory.getbasetemp()) / f"property-{os.getpid()}.txt"
    path.write_bytes(data)
    return path


def _line_starts(data: bytes) -> list[int]:
    starts, offset = [], 0
    for line in data.splitlines(keepends=True):
        starts.append(offset)
        offset += len(line)
    return starts
