"""Compilation of generated functions, with their text at hand for tracebacks and debuggers.

Each text has a file name such as ``<firesteel fused loop 5f0c8a1e9b3d>``. The number is a digest of the
text, so the same loop has the same name in every process. ``linecache`` holds the text under that
name as long as the compiled code exists.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from threading import Lock
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakValueDictionary, finalize

_LineCacheEntry = tuple[int, None, list[str], str]

_lock = Lock()
# At most one code object exists per file name. When it is freed, linecache forgets the text.
_living: WeakValueDictionary[str, CodeType] = WeakValueDictionary()


def define(source: str, title: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Compile the one function that ``source`` consists of.

    Args:
        source: The text of the function, from ``def`` to its last line.
        title: A few words for the file name that tracebacks show.
        names: The globals of the function.
    """
    # Tells firesteel.usercode.failures that the frame is not the user's.
    names["__name__"] = __name__
    return FunctionType(_compiled(source, title), names)


@lru_cache(maxsize=128)
def _compiled(source: str, title: str) -> CodeType:
    """Compile once for all subtasks that have the same loop around different functions."""
    digest = blake2b(source.encode(), digest_size=6).hexdigest()
    file_name = f"<firesteel {title} {digest}>"
    with _lock:
        code = _living.get(file_name)
        if code is None:
            (code,) = (
                constant
                for constant in compile(source, file_name, "exec").co_consts
                if isinstance(constant, CodeType)
            )
            _living[file_name] = code
            # Without a modification time, linecache keeps the entry when it looks for changed files.
            entry = (len(source), None, source.splitlines(keepends=True), file_name)
            linecache.cache[file_name] = entry
            finalize(code, _forget, file_name, entry).atexit = False
        return code


def _forget(file_name: str, entry: _LineCacheEntry) -> None:
    """Remove the text of code that was freed, unless the text belongs to newer code."""
    if linecache.cache.get(file_name) is entry:
        del linecache.cache[file_name]
