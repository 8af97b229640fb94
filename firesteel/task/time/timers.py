"""Timers of an operator: by key and namespace, in event time and in processing time.

A timer is an entry of keyed state, so it is part of every snapshot and moves with its key. A heap,
which is rebuilt on restore, knows which timer is due next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import islice
from math import inf
from typing import Any, NoReturn

from firesteel.datastream.timerservice import TimerService
from firesteel.errors import InvalidProgramError, shorten
from firesteel.state.backend import KeyedStateBackend
from firesteel.state.tables import MISSING
from firesteel.task.key_context import KeyContext
from firesteel.task.time.clock import SubtaskClock

OnTimer = Callable[[Any, Any, int], None]
"""Called with (key, namespace, timestamp) of a timer that is due."""

Entry = tuple[Any, tuple[int, Any]]
"""The key of a timer's entry in the table: (key, (time, namespace))."""

TIMER_TABLES = "_timers"
"""The prefix of the names of timer tables."""

# The number of stale entries at which a heap is cleaned.
_STALE_ENTRIES = 1024


class _TimerQueue:
    """The timers of one time domain. The table holds them, the heap orders their times.

    A deleted timer keeps its place until its time comes, or until there are too many.
    """

    __slots__ = ("_heap", "_live", "_places", "_table", "_timers", "fired")

    def __init__(self, keyed_state: KeyedStateBackend, name: str) -> None:
        # The namespace of an entry is (time, the timer's own namespace).
        self._table = keyed_state.value_table(name, namespaced=True)
        # The entries of each time, in the order of their registration, and a heap of the times.
        # Most times have one timer. Its entry needs no list.
        self._timers: dict[int, Entry | list[Entry] | deque[Entry]] = {}
        self._heap: list[int] = []
        # The number of entries, with those of deleted timers.
        self._places = 0
        self._live = 0
        #: The number of timers that have fired.
        self.fired = 0

    def register(self, key: Any, namespace: Any, time: int) -> None:
        entry = (key, (time, namespace))
        table = self._table
        overlay = table.overlay
        # The table's get and put, inlined: functions register a timer for every record.
        known = overlay.get(entry, MISSING)
        if known is not MISSING:
            return
        if entry not in overlay and table.base.get(entry, MISSING) is not MISSING:
            return
        overlay[entry] = None
        self._places += 1
        self._live += 1
        self._add(entry)

    def _add(self, entry: Entry) -> None:
        time = entry[1][0]
        known = self._timers.get(time)
        if known is None:
            self._timers[time] = entry
            heappush(self._heap, time)
        elif isinstance(known, tuple):
            self._timers[time] = [known, entry]
        else:
            known.append(entry)

    def delete(self, key: Any, namespace: Any, time: int) -> None:
        entry = (key, (time, namespace))
        if self._table.get(entry) is MISSING:
            return
        self._table.remove(entry)
        self._live -= 1
        if self._places > 2 * self._live + _STALE_ENTRIES:
            self._drop_stale_entries()

    def next_time(self) -> int | None:
        heap, table = self._heap, self._table
        while heap:
            time = heap[0]
            timers = _all_of(self._timers[time])
            for number, entry in enumerate(timers):
                if table.get(entry) is not MISSING:
                    self._places -= number
                    if number:
                        self._timers[time] = list(islice(timers, number, None))
                    return time
            self._places -= len(timers)
            del self._timers[time]
            heappop(heap)
        return None

    def fire_until(self, time: float, on_timer: OnTimer) -> bool:
        """Fire all timers that are due, including those registered meanwhile. True if one fired."""
        heap, remove = self._heap, self._table.remove
        overlay, in_base = self._table.overlay, self._table.base.get
        fired = 0
        while heap and heap[0] <= time:
            due = heappop(heap)
            found = self._timers.pop(due)
            timers = found if isinstance(found, deque) else deque(_all_of(found))
            while timers:
                entry = timers.popleft()
                self._places -= 1
                # It was deleted, or deleted and registered again, so that it has two places.
                if overlay.get(entry, MISSING) is MISSING and (
                    entry in overlay or in_base(entry, MISSING) is MISSING
                ):
                    continue
                remove(entry)
                self._live -= 1
                fired += 1
                on_timer(entry[0], entry[1][1], due)
                if heap and heap[0] <= due:
                    # It has registered a timer. A late one comes next, one of this time comes last.
                    self._put_back(due, timers)
                    break
        self.fired += fired
        return fired > 0

    def _put_back(self, time: int, timers: deque[Entry]) -> None:
        """Return timers to their place before those of the same time that came meanwhile."""
        added = self._timers.get(time)
        if added is not None:
            timers.extend(_all_of(added))
            self._timers[time] = timers
        elif timers:
            self._timers[time] = timers
            heappush(self._heap, time)

    def restore(self) -> None:
        """Read the timers from the table."""
        self._timers.clear()
        self._heap.clear()
        self._places = 0
        for entry in self._table.keys():  # noqa: SIM118 - a table is no mapping
            self._places += 1
            self._add(entry)
        self._live = self._places

    def _drop_stale_entries(self) -> None:
        # In place, because ``fire_until`` may be using the heap. The timers that it is firing have
        # no place here.
        table, seen = self._table, set()
        firing = self._places - sum(len(_all_of(found)) for found in self._timers.values())
        for time in list(self._timers):
            kept = []
            for entry in _all_of(self._timers[time]):
                if entry not in seen and table.get(entry) is not MISSING:
                    seen.add(entry)
                    kept.append(entry)
            if kept:
                self._timers[time] = kept
            else:
                del self._timers[time]
        self._heap[:] = sorted(self._timers)
        self._places = firing + len(seen)

    def __len__(self) -> int:
        return self._live


def _all_of(found: Entry | list[Entry] | deque[Entry]) -> list[Entry] | deque[Entry]:
    return [found] if isinstance(found, tuple) else found


class InternalTimerService:
    """Registers timers for a key and a namespace, and calls back when their time has come.

    Equal timers (key, namespace, time) are one timer, and fire once. Timers of equal time fire in
    the order in which they were registered.

    after_round: called after timers have fired and before the watermark is emitted, so that their
        results leave first.
    """

    def __init__(
        self,
        name: str,
        keyed_state: KeyedStateBackend,
        clock: SubtaskClock,
        on_event_time: OnTimer,
        on_processing_time: OnTimer,
        after_round: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self._clock = clock
        self._on_event_time = on_event_time
        self._on_processing_time = on_processing_time
        self._after_round = after_round
        self._event_time = _TimerQueue(keyed_state, f"{TIMER_TABLES}/{name}/event")
        self._processing_time = _TimerQueue(keyed_state, f"{TIMER_TABLES}/{name}/processing")

    def current_watermark(self) -> int:
        return self._clock.watermark

    def current_processing_time(self) -> int:
        return self._clock.now_millis()

    def register_event_time_timer(self, key: Any, namespace: Any, time: int) -> None:
        """Register a timer. One that is late already fires with the next watermark."""
        self._event_time.register(key, namespace, time)

    def delete_event_time_timer(self, key: Any, namespace: Any, time: int) -> None:
        self._event_time.delete(key, namespace, time)

    def register_processing_time_timer(self, key: Any, namespace: Any, time: int) -> None:
        self._processing_time.register(key, namespace, time)

    def delete_processing_time_timer(self, key: Any, namespace: Any, time: int) -> None:
        self._processing_time.delete(key, namespace, time)

    def advance_watermark(self, watermark: int) -> None:
        """Fire the event-time timers up to ``watermark``, in the order of their times."""
        if self._event_time.fire_until(watermark, self._on_event_time):
            self._after_round()

    def advance_processing_time(self, now: int) -> bool:
        """Fire the processing-time timers up to ``now``. True if one fired."""
        fired = self._processing_time.fire_until(now, self._on_processing_time)
        if fired:
            self._after_round()
        return fired

    def end_key(self) -> None:
        """Fire all timers: those of event time, then those of processing time."""
        self._event_time.fire_until(inf, self._on_event_time)
        self._processing_time.fire_until(inf, self._on_processing_time)
        self._after_round()

    def next_processing_time(self) -> int | None:
        return self._processing_time.next_time()

    def restore(self) -> None:
        """Read the timers after the keyed state was replaced."""
        self._event_time.restore()
        self._processing_time.restore()

    def count(self) -> tuple[int, int]:
        """The numbers of pending timers in event time and in processing time."""
        return len(self._event_time), len(self._processing_time)

    @property
    def fired(self) -> int:
        """The number of timers that have fired."""
        return self._event_time.fired + self._processing_time.fired


class BatchTimerService(InternalTimerService):
    """The timers of a batch job, which has one key at a time. They fire when their key ends.

    As in Flink, timers that are registered meanwhile are ignored. Otherwise a timer that registers
    the next one would fire forever.
    """

    _fires = False

    def register_event_time_timer(self, key: Any, namespace: Any, time: int) -> None:
        if not self._fires:
            super().register_event_time_timer(key, namespace, time)

    def register_processing_time_timer(self, key: Any, namespace: Any, time: int) -> None:
        if not self._fires:
            super().register_processing_time_timer(key, namespace, time)

    def advance_watermark(self, watermark: int) -> None:
        """Fire nothing. The last watermark comes after the last key."""

    def advance_processing_time(self, now: int) -> bool:
        """Fire nothing, because all records of a batch have arrived at the same time."""
        return False

    def end_key(self) -> None:
        self._fires = True
        try:
            super().end_key()
        finally:
            self._fires = False


class TimerServices:
    """All timer services of one operator. Most operators have none."""

    __slots__ = ("_clock", "_keyed_state", "_service_type", "_services")

    def __init__(
        self, keyed_state: KeyedStateBackend, clock: SubtaskClock, *, batch: bool = False
    ) -> None:
        self._keyed_state = keyed_state
        self._clock = clock
        self._service_type = BatchTimerService if batch else InternalTimerService
        self._services: dict[str, InternalTimerService] = {}

    def create(
        self,
        name: str,
        on_event_time: OnTimer,
        on_processing_time: OnTimer,
        after_round: Callable[[], None] = lambda: None,
    ) -> InternalTimerService:
        """Create a service. Operators call it when they are built, so that a restore finds it."""
        service = self._services[name] = self._service_type(
            name, self._keyed_state, self._clock, on_event_time, on_processing_time, after_round
        )
        return service

    def advance_watermark(self, watermark: int) -> None:
        for service in self._services.values():
            service.advance_watermark(watermark)

    def advance_processing_time(self, now: int) -> bool:
        fired = [service.advance_processing_time(now) for service in self._services.values()]
        return any(fired)

    def end_key(self) -> None:
        """Fire all timers of the current key of a batch job."""
        for service in self._services.values():
            service.end_key()

    def next_processing_time(self) -> int | None:
        times = [service.next_processing_time() for service in self._services.values()]
        return min((time for time in times if time is not None), default=None)

    def restore(self) -> None:
        for service in self._services.values():
            service.restore()

    @property
    def fired(self) -> int:
        return sum(service.fired for service in self._services.values())

    @property
    def registered(self) -> int:
        return sum(sum(service.count()) for service in self._services.values())

    def __bool__(self) -> bool:
        return bool(self._services)

    def __iter__(self) -> Iterator[InternalTimerService]:
        return iter(self._services.values())


class KeyedTimerService(TimerService):
    def __init__(
        self, timers: InternalTimerService, key_context: KeyContext, clock: SubtaskClock
    ) -> None:
        self._timers = timers
        self._key_context = key_context
        self._clock = clock

    def current_processing_time(self) -> int:
        return self._clock.now_millis()

    def current_watermark(self) -> int:
        return self._clock.watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._timers.register_processing_time_timer(self._key_context.key, None, _time(timestamp))

    def register_event_time_timer(self, timestamp: int) -> None:
        self._timers.register_event_time_timer(self._key_context.key, None, _time(timestamp))

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._timers.delete_processing_time_timer(self._key_context.key, None, _time(timestamp))

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._timers.delete_event_time_timer(self._key_context.key, None, _time(timestamp))


class UnkeyedTimerService(TimerService):
    """Tells the times, and refuses timers, because a timer needs a key."""

    def __init__(self, clock: SubtaskClock) -> None:
        self._clock = clock

    def current_processing_time(self) -> int:
        return self._clock.now_millis()

    def current_watermark(self) -> int:
        return self._clock.watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        _refuse()

    def register_event_time_timer(self, timestamp: int) -> None:
        _refuse()

    def delete_processing_time_timer(self, timestamp: int) -> None:
        _refuse()

    def delete_event_time_timer(self, timestamp: int) -> None:
        _refuse()


def _time(timestamp: Any) -> int:
    if isinstance(timestamp, int):
        return timestamp
    raise TypeError(
        "the time of a timer must be an int, in milliseconds since 1970, but got "
        f"{shorten(timestamp)}"
    )


def _refuse() -> NoReturn:
    raise InvalidProgramError(
        "Setting timers is only supported on a keyed stream: call key_by() before the function"
    )
