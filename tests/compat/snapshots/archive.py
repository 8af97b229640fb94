"""Archives of snapshots, in which paths are placeholders until they are unpacked."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

_PLACEHOLDER = "/directory-of-the-job"


def pack(saved: Path, directory: str, target: Path) -> None:
    """Put ``saved`` into an archive, with a placeholder for the job's ``directory``."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(saved.rglob("*")):
            if not file.is_file():
                continue
            content = file.read_bytes()
            if file.name == "_metadata":
                content = _moved(content, directory, _PLACEHOLDER)
            assert directory.encode() not in content, f"{file} names the directory of the job"
            # A fixed time: the same content gives the same archive.
            archive.writestr(
                zipfile.ZipInfo(str(file.relative_to(saved))), content, zipfile.ZIP_DEFLATED
            )


def unpack(archive: Path, target: Path) -> Path:
    """Unpack to ``target``, where the job's directory is ``directory``. Returns the snapshot."""
    with zipfile.ZipFile(archive) as content:
        content.extractall(target)
    (target / "directory").mkdir(exist_ok=True)
    (metadata,) = target.glob("snapshot/*/_metadata")
    moved = _moved(metadata.read_bytes(), _PLACEHOLDER, str(target / "directory"))
    metadata.write_bytes(moved)
    return metadata.parent


def _moved(metadata: bytes, old: str, new: str) -> bytes:
    """Firesteel's own names in metadata are relative, but sources and sinks name files of theirs."""
    document = json.loads(metadata)
    body = json.dumps(_replaced(document["checkpoint"], old, new), separators=(",", ":")).encode()
    head = {key: document[key] for key in ("format", "version")}
    head |= {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    return json.dumps(head)[:-1].encode() + b', "checkpoint": ' + body + b"}\n"


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, list):
        return [_replaced(one, old, new) for one in value]
    if not isinstance(value, dict):
        return value
    pickled = base64.b64decode(value["pickle"]) if "pickle" in value else b""
    if old.encode() in pickled:
        # The state of a file sink, which is plain data.
        content = _replaced(pickle.loads(pickled), old, new)
        return {"pickle": base64.b64encode(pickle.dumps(content, protocol=5)).decode()}
    return {key: _replaced(one, old, new) for key, one in value.items()}
