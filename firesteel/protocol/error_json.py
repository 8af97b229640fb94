"""Errors of Firesteel as JSON, for processes that do not unpickle messages of others."""

from __future__ import annotations

import traceback
from typing import Any

from firesteel import errors
from firesteel.errors import FiresteelError, JobExecutionError, restore_error

_PLAIN = str | int | float | bool | None


def encode_error(error: BaseException) -> dict[str, Any]:
    """Return the class of an error, its plain facts and its text."""
    kind = type(error)
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "args": [arg for arg in error.args if isinstance(arg, _PLAIN)],
        "fields": {key: value for key, value in vars(error).items() if isinstance(value, _PLAIN)},
        "message": str(error),
        "stack-trace": "".join(traceback.format_exception(error)),
    }


def decode_error(document: dict[str, Any]) -> FiresteelError:
    """Return the error. One whose class is not in ``firesteel.errors`` becomes a JobExecutionError."""
    module, _, name = str(document.get("class", "")).rpartition(".")
    kind = getattr(errors, name, None) if module == errors.__name__ else None
    if not (isinstance(kind, type) and issubclass(kind, FiresteelError)):
        return JobExecutionError(str(document.get("message", "")))
    return restore_error(kind, tuple(document.get("args", ())), dict(document.get("fields", {})))
