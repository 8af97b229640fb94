"""The runtime mode of a program: streaming or batch."""

from __future__ import annotations

from enum import Enum

__all__ = ["RuntimeExecutionMode"]


class RuntimeExecutionMode(Enum):
    """The runtime mode of a program.

    - ``STREAMING`` runs epoch after epoch. It is the default.
    - ``BATCH`` runs one Spark job over bounded sources, and emits final results only.
    - ``AUTOMATIC`` is BATCH if all sources are bounded, and STREAMING otherwise.

    >>> _ = env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    >>> words = env.from_collection(["a", "b", "a"]).map(lambda word: (word, 1))
    >>> list(words.key_by(lambda pair: pair[0]).sum(1).execute_and_collect())
    [('a', 2), ('b', 1)]
    """

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
