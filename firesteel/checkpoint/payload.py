"""Values of the job inside a checkpoint: JSON where it is lossless, else pickled bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.base import SourceSplit
from firesteel.usercode import pickling

__all__ = ["Payload", "payload_of_split", "split_of_payload"]

_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Payload:
    """Either ``json`` or ``pickled``. Only ``load`` unpickles."""

    json: Any = None
    pickled: bytes | None = None

    @staticmethod
    def of(value: Any) -> Payload:
        """Encode as JSON if that is lossless. A tuple, for example, would become a list.

        >>> Payload.of({"offset": 7})
        Payload(json={'offset': 7}, pickled=None)
        >>> Payload.of((1, 2)).load()
        (1, 2)
        """
        if _is_json(value, _DEEPEST):
            return Payload(json=value)
        return Payload(pickled=pickling.dumps(value))

    def load(self) -> Any:
        """The value. Unpickling runs code of the job's classes."""
        return self.json if self.pickled is None else pickling.loads(self.pickled)

    @property
    def needs_code(self) -> bool:
        return self.pickled is not None


def _is_json(value: Any, depth: int) -> bool:
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return True
    if kind is float:
        return math.isfinite(value)
    if depth == 0:
        return False
    if kind is list:
        return all(_is_json(element, depth - 1) for element in value)
    if kind is dict:
        return all(
            type(key) is str and _is_json(element, depth - 1) for key, element in value.items()
        )
    return False


def payload_of_split(split: SourceSplit) -> Payload:
    """Encode a split. It should be JSON, but other splits are pickled."""
    content = {
        "split_id": split.split_id,
        "properties": dict(split.properties),
        "position": split.position,
    }
    if type(split) is SourceSplit and _is_json(content, _DEEPEST):
        return Payload(json=content)
    return Payload(pickled=pickling.dumps(split))


def split_of_payload(payload: Payload) -> SourceSplit:
    loaded = payload.load()
    if isinstance(loaded, SourceSplit):
        return loaded
    return SourceSplit(loaded["split_id"], loaded["properties"], loaded["position"])
