"""Metadata files round-trip, name the damage when they are damaged, and never run code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.checkpoint.metadata import CheckpointMetadata, SubtaskState
from firesteel.checkpoint.payload import Payload, payload_of_split, split_of_payload
from firesteel.checkpoint.storage.metadata_file import (
    METADATA_FILE,
    CheckpointNotFoundError,
    CorruptCheckpointError,
    ForeignFileError,
    decode_metadata,
    encode_metadata,
    open_checkpoint,
    read_metadata,
    write_metadata,
)
from firesteel.checkpoint.storage.segment_store import StorageSegmentStore
from firesteel.checkpoint.storage.storage import Storage, open_storage
from firesteel.datastream.connectors.base import SourceSplit
from firesteel.state.changelog import Segment
from firesteel.state.elements import encode_element
from firesteel.state.operator_state import OperatorState, Redistribution
from tests.checkpoint.builders import all_metadata, file_segment, metadata, operator, values
from tests.thoroughness import examples

_DIRECTORY = open_storage("/checkpoints/job/chk-7")
_SAMPLE = metadata(
    operator(
        "count",
        SubtaskState(
            segments=(
                Segment(3, True, 9, path="/checkpoints/job/shared/segment-3", checksum=5),
                Segment(4, False, 3, inline=b"abc"),
            ),
            committables=(Payload.of({"file": "part-0"}),),
        ),
        uid="counter",
    )
)
_ENCODED = encode_metadata(_SAMPLE, _DIRECTORY)


@given(all_metadata(_DIRECTORY))
def test_what_is_encoded_is_decoded(original: CheckpointMetadata) -> None:
    assert decode_metadata(encode_metadata(original, _DIRECTORY), _DIRECTORY) == original


@given(values)
def test_a_payload_gives_back_the_very_value(value: object) -> None:
    loaded = Payload.of(value).load()
    assert loaded == value
    assert type(loaded) is type(value)


@given(st.integers(0, len(_ENCODED) * 8 - 1))
@settings(max_examples=examples(400))
def test_every_flipped_bit_is_found(bit: int) -> None:
    damaged = bytearray(_ENCODED)
    damaged[bit // 8] ^= 1 << (bit % 8)
    with pytest.raises(CorruptCheckpointError, match="/checkpoints/job/chk-7/_metadata is damaged"):
        decode_metadata(bytes(damaged), _DIRECTORY)


@pytest.mark.parametrize("length", range(0, len(_ENCODED), 7))
def test_every_truncation_is_found(length: int) -> None:
    with pytest.raises(CorruptCheckpointError):
        decode_metadata(_ENCODED[:length], _DIRECTORY)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"PAR1", "does not begin with the header"),
        (
            _ENCODED.replace(b'"version": 1', b'"version": 9'),
            "version 9, but this version of Firesteel",
        ),
        (_ENCODED[:-20], "bytes, but it has"),
        (_ENCODED + b" ", "bytes, but it has"),
        (_ENCODED.replace(b"part-0", b"part-1"), "checksum does not match"),
    ],
    ids=["empty", "other", "version", "short", "long", "changed"],
)
def test_the_error_says_what_is_wrong(content: bytes, reason: str) -> None:
    with pytest.raises(CorruptCheckpointError, match=reason):
        decode_metadata(content, _DIRECTORY)


def test_the_file_is_one_json_document() -> None:
    document = json.loads(_ENCODED)
    assert document["format"] == "firesteel checkpoint"
    (first, second) = document["checkpoint"]["operators"][0]["subtasks"][0]["segments"]
    assert first["file"] == "../shared/segment-3"
    assert second["inline"] == "YWJj"


class Bomb:
    """Unpickling it fails the test."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("a pickle was opened",)


def test_reading_opens_no_pickle(storage: Storage) -> None:
    bomb = Payload.of(Bomb())
    assert bomb.needs_code
    element = encode_element(Bomb())
    state = OperatorState(Redistribution.SPLIT, (element,), '["split", "PICKLED_BYTE_ARRAY"]')
    subtask = SubtaskState(
        operator_state={"bombs": state},
        splits=(bomb,),
        writer_states=(bomb,),
        committables=(bomb,),
        opaque=bomb,
    )
    directory = storage.at("chk-1")
    write_metadata(metadata(operator("source", subtask, coordinator=bomb)), directory)
    assert read_metadata(directory).operators[0].subtasks == (subtask,)


def test_a_moved_checkpoint_finds_its_files(tmp_path: Path) -> None:
    job = open_storage(str(tmp_path / "old" / "job"))
    segment = file_segment(job, "segment-1", b"the state")
    write_metadata(metadata(operator("count", SubtaskState((segment,)))), job.at("chk-7"))
    shutil.move(tmp_path / "old", tmp_path / "new")

    _, moved = open_checkpoint(str(tmp_path / "new" / "job" / "chk-7" / METADATA_FILE))
    (found,) = moved.operators[0].subtasks[0].segments
    assert found.path == str(tmp_path / "new" / "job" / "shared" / "segment-1")
    assert StorageSegmentStore(None, 0).read(found) == b"the state"


def test_a_checkpoint_does_not_refer_to_what_would_stay_behind(local: Storage) -> None:
    elsewhere = Segment(1, True, 1, path="/other/job/shared/segment-1", checksum=1)
    with pytest.raises(ForeignFileError, match="/other/job/shared/segment-1 is neither in"):
        write_metadata(metadata(operator("count", SubtaskState((elsewhere,)))), local.at("chk-1"))


@pytest.mark.parametrize("name", ["/etc/passwd", "../../x", "../shared/../x", "../other/x"])
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    document = json.loads(_ENCODED)
    segments = document["checkpoint"]["operators"][0]["subtasks"][0]["segments"]
    segments[0]["file"] = name
    body = json.dumps(document["checkpoint"], separators=(",", ":")).encode()
    forged = _reseal(body)
    with pytest.raises(CorruptCheckpointError, match="cannot be parsed"):
        decode_metadata(forged, _DIRECTORY)


@pytest.mark.parametrize("name", ["/etc/passwd", "../../x", "a/b", "..", "."])
def test_a_restore_writes_no_file_elsewhere(name: str) -> None:
    """RocksDB's files get their names in the slot from the metadata."""
    document = json.loads(_ENCODED)
    segments = document["checkpoint"]["operators"][0]["subtasks"][0]["segments"]
    segments[0]["files"] = [{"name": name, "size": 1, "crc32": 1, "file": "../shared/000001.sst"}]
    body = json.dumps(document["checkpoint"], separators=(",", ":")).encode()
    with pytest.raises(CorruptCheckpointError, match="is not the name of a file"):
        decode_metadata(_reseal(body), _DIRECTORY)


def _reseal(body: bytes) -> bytes:
    import hashlib

    head = (
        f'{{"format": "firesteel checkpoint", "version": 1, "size": {len(body)}, '
        f'"sha256": "{hashlib.sha256(body).hexdigest()}", "checkpoint": '
    )
    return head.encode() + body + b"}\n"


def test_where_nothing_is_the_error_says_so(storage: Storage) -> None:
    with pytest.raises(CheckpointNotFoundError, match=r"chk-1: there is no file _metadata"):
        read_metadata(storage.at("chk-1"))


@pytest.mark.parametrize(
    "split",
    [
        SourceSplit("a"),
        SourceSplit("b", {"path": "x", "ends": [1, 2]}, {"offset": 7}),
        SourceSplit("c", {"path": "x"}, (1, 2)),
    ],
    ids=["new", "plain", "tuple"],
)
def test_splits_come_back(split: SourceSplit) -> None:
    payload = payload_of_split(split)
    assert split_of_payload(payload) == split
    assert payload.needs_code == isinstance(split.position, tuple)
