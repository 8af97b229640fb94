"""Flow control between live slots: the bytes that may be on their way to a slow slot.

Spark's shuffle holds about a megabyte between two slots, whatever the slots do with it. For a
function that takes a millisecond per record this is more than a minute of work, and every barrier
would wait for it. So a slot reports to the slots before it the bytes that it has processed, and the
bytes that it processes in the target time. They send no more than that ahead of it, in smaller
buffers. Flink calls this buffer debloating.

Slots that process what Spark holds within the target time are not limited, and send no credits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from firesteel.protocol.live_round import Place
from firesteel.protocol.messages import Credit
from firesteel.task.exchange.record_writers import RecordWriter
from firesteel.task.slot_activity import SlotActivity

Channel = tuple[int, int]
"""An edge, and the subtask before it."""
Way = tuple[int, int]
"""An edge, and the slot after it."""

# About what Spark and the connections to it hold between two slots.
_HELD_BYTES = 1 << 20
# A slot whose speed is not known yet gets this much: some dozens of small records, so that the first
# barrier of a job does not wait for minutes behind a very slow function.
_FIRST_BYTES = 256
# Enough for two rows of one small record each, so that a slot has the next record when it ends one.
_LEAST_BYTES = 64
# Each record is taken to become one record, until this many were seen.
_FIRST_RECORDS = 64
_REMEMBERED_RECORDS = 2048
# A window is sent in this many buffers, and renewed when one of them was processed.
_BUFFERS = 4
# While the speed is not limited, it is measured after this many bytes.
_MEASURED_BYTES = 64 << 10
# The speed is that of about the last second of work.
_MEMORY_SECONDS = 1.0
# To lose its limit, a slot must be this much faster than one that gets a limit.
_CLEARLY = 1.5
# The weight of earlier reports, when a window is divided between channels.
_FADING = 0.7


class SendWindows:
    """The bytes that a slot has sent and that were not processed yet, per edge and target."""

    def __init__(self, writers: Sequence[RecordWriter], *, limited: bool) -> None:
        self._sent: dict[Way, int] = {}
        self._taken: dict[Way, int] = {}
        self._limits: dict[Way, int] = {}
        # The ways on which nothing may be sent for now.
        self._full: set[Way] = set()
        self._writers = {writer.edge.id: writer for writer in writers}
        # Records that came in and left, of late: a record may become many.
        self._records_in = self._records_out = float(_FIRST_RECORDS)
        for edge, writer in self._writers.items():
            for slot in writer.target_slots:
                self._sent[edge, slot] = self._taken[edge, slot] = 0
                if limited:
                    self._limits[edge, slot] = _FIRST_BYTES
            if limited:
                self._resize(writer)

    @property
    def is_full(self) -> bool:
        """The slot must not produce more records for now."""
        return bool(self._full)

    @property
    def is_limited(self) -> bool:
        return bool(self._limits)

    @property
    def limit(self) -> int:
        """The sum of all limits."""
        return sum(self._limits.values())

    @property
    def sent_bytes(self) -> int:
        """All bytes that were sent since the attempt began."""
        return sum(self._sent.values())

    def sent(self, edge: int, target: int, size: int) -> None:
        """Count a buffer that leaves the slot."""
        way = (edge, target)
        sent = self._sent[way] = self._sent[way] + size
        if self._limits:
            limit = self._limits.get(way)
            if limit is not None and sent - self._taken[way] >= limit:
                self._full.add(way)

    def take(self, credits: Iterable[Credit]) -> None:
        """Take what later slots have processed, and their limits."""
        changed = set()
        for credit in credits:
            way = (credit.edge, credit.target)
            self._taken[way] = credit.taken
            if credit.limit is None:
                self._limits.pop(way, None)
            else:
                self._limits[way] = credit.limit
            if credit.limit is not None and self._sent[way] - credit.taken >= credit.limit:
                self._full.add(way)
            else:
                self._full.discard(way)
            changed.add(credit.edge)
        for edge in changed:
            self._resize(self._writers[edge])

    def _resize(self, writer: RecordWriter) -> None:
        limits = [
            limit
            for slot in writer.target_slots
            if (limit := self._limits.get((writer.edge.id, slot))) is not None
        ]
        writer.resize_buffers(min(limits) // _BUFFERS if limits else None)

    def most_records(self) -> int:
        """Return the records that the slot may process at once, if it is limited."""
        edges = {edge for edge, _ in self._limits}
        least = min(self._writers[edge].buffer_records for edge in edges)
        return max(1, int(least * min(1.0, self._records_in / max(self._records_out, 1.0))))

    def processed(self, records: int, emitted: int) -> None:
        """Note the records that left in buffers while the slot processed this many."""
        self._records_in += records
        self._records_out += emitted
        if self._records_in > _REMEMBERED_RECORDS:
            self._records_in /= 2
            self._records_out /= 2


class _Account:
    """The bytes of a channel that were processed, and those that the sender knows about."""

    __slots__ = ("due", "limit", "seen", "taken", "told", "weight")

    def __init__(self) -> None:
        self.taken = 0
        self.told = 0
        # Report when ``taken`` has reached it. The first buffer is reported at once, so that a fast
        # slot loses its first limit.
        self.due = 1
        self.limit: int | None = _FIRST_BYTES
        # The part of the channel in the bytes of the last reports.
        self.weight = 0.0
        self.seen = 0

    def weigh(self) -> float:
        self.weight = _FADING * self.weight + max(0, self.taken - self.seen)
        self.seen = self.taken
        return self.weight

    def report(self, edge: int, slot: int, limit: int | None) -> Credit:
        self.limit = limit
        self.told = self.taken
        step = _MEASURED_BYTES if limit is None else max(1, limit // _BUFFERS)
        self.due = self.taken + step
        return Credit(edge, slot, self.taken, limit)

    @property
    def is_nearly_due(self) -> bool:
        return 2 * (self.taken - self.told) >= self.due - self.told


class Receipts:
    """The bytes that a slot has processed, per channel, and the speed at which it does.

    slot: the index of this slot.
    channels: the slot that sends on each channel.
    activity: the time that the slot spends waiting.
    windows: the limits of what the slot itself may send.
    seconds: the time that the bytes on their way to this slot may take.
    """

    def __init__(
        self,
        slot: int,
        channels: Mapping[Channel, Place],
        activity: SlotActivity,
        windows: SendWindows,
        seconds: float,
    ) -> None:
        self._slot = slot
        self._windows = windows
        self._places = channels
        self._activity = activity
        self._target_seconds = seconds
        self._accounts = {channel: _Account() for channel in channels}
        self._is_limited = True
        # All bytes, and the work that the speed is computed from.
        self._total = 0
        self._bytes = 0.0
        self._seconds = 0.0
        # The totals at the last measurement.
        self._measured_total = 0
        self._measured_seconds = 0.0

    def begin(self) -> None:
        """Measure from now on. The functions are open."""
        self._measured_seconds = self._working_seconds()

    def expect(self, channel: Channel, size: int) -> None:
        """Leave out the bytes of a restored row, because no slot has sent it in this attempt."""
        self._accounts[channel].taken -= size

    def processed(self, channel: Channel, size: int) -> bool:
        """Count a buffer. Return True if it is time to report."""
        account = self._accounts[channel]
        taken = account.taken = account.taken + size
        self._total += size
        return taken >= account.due

    def credits(self) -> dict[Place, list[Credit]]:
        """Measure the speed. Return the credits by the slots that they are for."""
        speed = self._measure()
        fast = _HELD_BYTES / self._target_seconds
        was_limited = self._is_limited
        self._is_limited = speed < (_CLEARLY * fast if was_limited else fast)
        window = speed * self._target_seconds
        if self._windows.is_limited:
            # It gets no more than it can send on.
            self._is_limited = True
            window = min(window, self._windows.limit * self._bytes_per_sent_byte())
        found: dict[Place, list[Credit]] = {}
        weights = sum([account.weigh() for account in self._accounts.values()])
        for channel, account in self._accounts.items():
            if self._is_limited:
                if account.limit is not None and not account.is_nearly_due:
                    continue
                # A channel with more than its share of the records gets more of the window.
                share = max(account.weight / max(weights, 1.0), 1 / len(self._accounts))
                limit = max(_LEAST_BYTES, int(window * share))
                credit = account.report(channel[0], self._slot, limit)
            else:
                is_news = account.limit is not None
                credit = account.report(channel[0], self._slot, None)
                if not is_news:
                    continue
            found.setdefault(self._places[channel], []).append(credit)
        return found

    def _bytes_per_sent_byte(self) -> float:
        # Records wait in buffers at first, and a filter may not have let one pass yet.
        return (self._total + _FIRST_BYTES) / (self._windows.sent_bytes + _FIRST_BYTES)

    def _measure(self) -> float:
        """Return the bytes per second of work. Back-pressured time counts as work."""
        seconds = self._working_seconds()
        self._bytes += self._total - self._measured_total
        self._seconds += seconds - self._measured_seconds
        self._measured_total, self._measured_seconds = self._total, seconds
        speed = self._bytes / max(self._seconds, 1e-6)
        if self._seconds > _MEMORY_SECONDS:
            part = _MEMORY_SECONDS / self._seconds
            self._bytes *= part
            self._seconds *= part
        return speed

    def _working_seconds(self) -> float:
        age, idle, _ = self._activity.seconds()
        return age - idle
