"""Operator ids, which identify the state of an operator across restarts and new versions of a job.

An id comes from the user's hash, else from the uid, else from the position in the graph. It never
comes from a process-wide counter or from ``hash()``, which differ between processes.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Mapping, Sequence

from firesteel.errors import InvalidProgramError
from firesteel.graph.transformations import Transformation

_UID_HASH = re.compile(r"[0-9a-fA-F]{32}")


def check_uid_hash(uid_hash: str) -> str:
    if not _UID_HASH.fullmatch(uid_hash):
        raise InvalidProgramError(
            f"A uid hash must be 32 hexadecimal characters, but it is {uid_hash!r}."
        )
    return uid_hash.lower()


def hash_of_uid(uid: str) -> str:
    return _digest("uid", uid)


def assign(
    nodes: Mapping[int, Transformation], inputs: Mapping[int, Sequence[int]]
) -> dict[int, str]:
    """The operator id of every node. ``inputs[node]`` are its input nodes in order."""
    generated = _structural_ids(nodes, inputs)
    ids: dict[int, str] = {}
    owner: dict[str, int] = {}
    for node, transformation in nodes.items():
        operator_id = _given_id(transformation) or generated[node]
        if operator_id in owner:
            other = nodes[owner[operator_id]]
            raise InvalidProgramError(
                f"The operators '{other.name}' and '{transformation.name}' have the same "
                f"{_kind_of_id(transformation)}. Every uid must be unique within a job."
            )
        owner[operator_id] = node
        ids[node] = operator_id
    return ids


def _given_id(transformation: Transformation) -> str | None:
    if transformation.uid_hash is not None:
        return transformation.uid_hash
    if transformation.uid is not None:
        return hash_of_uid(transformation.uid)
    return None


def _kind_of_id(transformation: Transformation) -> str:
    if transformation.uid_hash is not None:
        return f"uid hash {transformation.uid_hash}"
    return f"uid '{transformation.uid}'"


def _structural_ids(
    nodes: Mapping[int, Transformation], inputs: Mapping[int, Sequence[int]]
) -> dict[int, str]:
    """Hashes of the kind of an operator, its position in breadth-first order, and its input ids."""
    ids: dict[int, str] = {}
    for position, node in enumerate(_breadth_first(nodes, inputs)):
        transformation = nodes[node]
        given = _given_id(transformation)
        upstream = [ids[source] for source in inputs[node]]
        ids[node] = given or _digest(
            "structure", str(position), type(transformation.spec).__name__, *upstream
        )
    return ids


def _breadth_first(
    nodes: Mapping[int, Transformation], inputs: Mapping[int, Sequence[int]]
) -> list[int]:
    """Sources first, and each operator after all of its inputs."""
    consumers: dict[int, list[int]] = {node: [] for node in nodes}
    missing = {node: len(set(inputs[node])) for node in nodes}
    for node in nodes:
        for source in dict.fromkeys(inputs[node]):
            consumers[source].append(node)
    ready = deque(node for node in nodes if not missing[node])
    order: list[int] = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for consumer in consumers[node]:
            missing[consumer] -= 1
            if not missing[consumer]:
                ready.append(consumer)
    return order


def _digest(*parts: str) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(4, "big"))
        digest.update(encoded)
    return digest.hexdigest()
