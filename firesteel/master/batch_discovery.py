"""Before a batch job reads anything, all splits of its sources must be known."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from firesteel.master.source_coordinator import SourceCoordinator

# So long may a cancellation go unnoticed.
_WAIT_SECONDS = 0.1


def discover_everything(
    sources: Iterable[SourceCoordinator],
    wait: Callable[[float], object],
    is_canceled: Callable[[], bool],
) -> bool:
    """Ask every enumerator, as often as it wants to be asked, until it is complete.

    ``wait`` lets seconds pass. Whether everything was found: False if the job was canceled first.
    """
    elapsed = 0.0
    due_at = dict.fromkeys(sources, 0.0)
    while due_at:
        source = min(due_at, key=lambda one: due_at[one])
        while (left := due_at[source] - elapsed) > 0.0 and not is_canceled():
            wait(step := min(left, _WAIT_SECONDS))
            # Never less than what is left because of rounding.
            elapsed = due_at[source] if step == left else elapsed + step
        if is_canceled():
            return False
        delay = source.look()
        if delay is None:
            del due_at[source]
        else:
            due_at[source] = elapsed + max(0.0, delay)
    return True
