"""DistributedCache, the local copies of files that were registered with the environment."""

from __future__ import annotations

from collections.abc import Mapping

from firesteel.errors import InvalidProgramError
from firesteel.stability import public_evolving

__all__ = ["DistributedCache"]


@public_evolving
class DistributedCache:
    """Local paths of registered files, from ``RuntimeContext.get_distributed_cache()``.

    Flink has this class in Java. Not in PyFlink.

    >>> DistributedCache({"model": "/tmp/cache/model.bin"}).get_file("model")
    '/tmp/cache/model.bin'
    """

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths

    def get_file(self, name: str) -> str:
        """Return the local path of a registered file or directory.

        Args:
            name: The name that was given to ``env.register_cached_file``.

        Raises:
            InvalidProgramError: No file has this name.
        """
        try:
            return self._paths[name]
        except KeyError:
            known = ", ".join(map(repr, self._paths)) or "none"
            raise InvalidProgramError(
                f"There is no cached file {name!r}. Registered files: {known}. Call "
                f"env.register_cached_file(path, {name!r}) before the job is executed."
            ) from None
