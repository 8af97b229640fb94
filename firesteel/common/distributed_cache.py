"""Files that were registered with the environment, where the tasks run."""

from __future__ import annotations

from collections.abc import Mapping

from firesteel.errors import InvalidProgramError

__all__ = ["DistributedCache"]


class DistributedCache:
    """What ``RuntimeContext.get_distributed_cache`` gives. Flink's Java class; PyFlink has none.

    >>> DistributedCache({"model": "/tmp/cache/model.bin"}).get_file("model")
    '/tmp/cache/model.bin'
    """

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths

    def get_file(self, name: str) -> str:
        """The local path of the file or directory that was registered under ``name``."""
        try:
            return self._paths[name]
        except KeyError:
            known = ", ".join(map(repr, self._paths)) or "none"
            raise InvalidProgramError(
                f"There is no cached file {name!r}; registered are: {known}. Call "
                f"env.register_cached_file(path, {name!r}) before the job is executed."
            ) from None
