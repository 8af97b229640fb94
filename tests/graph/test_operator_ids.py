import os
import re
import subprocess
import sys

import pytest

from firesteel.errors import InvalidProgramError
from firesteel.graph.operator_ids import check_uid_hash, hash_of_uid


def _ids(graph):
    return {node.name: node.operator_id for node in graph.nodes.values()}


def test_ids_are_32_hexadecimal_characters(program):
    p = program()
    p.print(p.map(p.source()))
    assert all(re.fullmatch("[0-9a-f]{32}", value) for value in _ids(p.stream_graph()).values())


def test_the_same_program_gets_the_same_ids(program):
    def build():
        p = program()
        p.print(p.map(p.source()))
        return _ids(p.stream_graph())

    assert build() == build()


def test_ids_are_the_same_in_another_process():
    script = "from firesteel.graph.operator_ids import hash_of_uid; print(hash_of_uid('a'))"
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": "17", "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == hash_of_uid("a")


def test_uid_decides_wherever_the_operator_stands(program):
    short, long = program(), program()
    short.map(short.source(), uid="my-map", name="marked")
    long.map(long.map(long.source()), uid="my-map", name="marked")
    assert _ids(short.stream_graph())["marked"] == hash_of_uid("my-map")
    assert _ids(long.stream_graph())["marked"] == hash_of_uid("my-map")


def test_twins_without_uid_differ(program):
    p = program()
    source = p.source()
    p.map(source, name="a")
    p.map(source, name="b")
    ids = _ids(p.stream_graph())
    assert ids["a"] != ids["b"]


def test_settings_that_do_not_change_the_structure_leave_ids_alone(program):
    def build(**fields):
        p = program()
        p.print(p.map(p.source(), **fields))
        return list(_ids(p.stream_graph()).values())

    assert build() == build(parallelism=4, name="other", slot_sharing_group="g")


def test_uid_hash_is_taken_as_it_is(program):
    p = program()
    p.map(p.source(), uid="ignored", uid_hash="0" * 32)
    assert _ids(p.stream_graph())["Map"] == "0" * 32


def test_duplicate_uid(program):
    p = program()
    source = p.source()
    p.map(source, uid="same", name="a")
    p.map(source, uid="same", name="b")
    with pytest.raises(InvalidProgramError, match="'a' and 'b' have the same uid 'same'"):
        p.stream_graph()


def test_duplicate_uid_hash(program):
    p = program()
    source = p.source()
    p.map(source, uid_hash="a" * 32, name="a")
    p.map(source, uid_hash="a" * 32, name="b")
    with pytest.raises(InvalidProgramError, match="uid hash"):
        p.stream_graph()


def test_uid_hash_must_be_hexadecimal():
    assert check_uid_hash("A" * 32) == "a" * 32
    for wrong in ("", "a" * 31, "g" * 32, "a" * 33):
        with pytest.raises(InvalidProgramError, match="32 hexadecimal"):
            check_uid_hash(wrong)
