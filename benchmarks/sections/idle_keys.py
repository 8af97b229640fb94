"""Cost of idle keys: the same job next to 10 thousand, 100 thousand and 1 million of them.

Keys that are in state but receive no records should cost nothing.
"""

from benchmarks.cases import BY_NAME, Case, add_second_field, first_field
from benchmarks.measure import Arguments, Figures, report, steady_rates
from benchmarks.peers.firesteel_jobs import (
    Count,
    Firesteel,
    counted,
    numbers,
    run_timed,
    with_event_time,
)
from benchmarks.sections.section import Section
from benchmarks.text import rate_text, ratio_text
from firesteel.common import Time
from firesteel.datastream.window import TumblingEventTimeWindows

_CASE = BY_NAME["tumbling_1k"]
_RECORDS = 4_000_000
_IDLE_KEYS = (10_000, 100_000, 1_000_000)
_ACTIVE_KEYS = 1_000


class Beside:
    """A reduction and a window count of 1,000 keys, next to idle keys with one record each.

    The first numbers of both halves are the records of the idle keys. They are the same in small
    and large runs, so the steady rate excludes their cost.
    """

    def __init__(self, peer: Firesteel, idle_keys: int) -> None:
        self.peer = peer
        self.idle = idle_keys

    def run(self, case: Case, records: int) -> float:
        idle, half = self.idle // 2, records // 2 + self.idle // 2
        total = 2 * half

        def pair(number: int) -> tuple[int, int]:
            position = number % half
            if position < idle:
                return (_ACTIVE_KEYS + position + (idle if number >= half else 0), number)
            return (number % _ACTIVE_KEYS, number)

        env = self.peer.environment()
        keyed = with_event_time(numbers(env, 0, total).map(pair), total).key_by(first_field)
        window = TumblingEventTimeWindows.of(Time.seconds(10))
        windows = keyed.window(window).aggregate(Count())
        with counted("idle keys, windows", [windows], None):
            return run_timed(env, "idle keys", [keyed.reduce(add_second_field)], total)


def measure(arguments: Arguments) -> None:
    peer = Firesteel(arguments.parallelism)
    found = steady_rates(
        _CASE,
        {str(idle): Beside(peer, idle).run for idle in _IDLE_KEYS},
        records=arguments.records_of(_CASE, _RECORDS),
        repeats=arguments.repeats,
    )
    base = found[str(_IDLE_KEYS[0])].rate
    for idle, measured in found.items():
        ratio = measured.rate / base if measured.rate and base else None
        report(section="idle_keys", keys=int(idle), rate=measured.rate, ratio=ratio)


def row(figures: Figures) -> list[str]:
    return [
        f"{figures['keys']:,} idle keys",
        rate_text(figures["rate"]),
        ratio_text(figures["ratio"]),
    ]


SECTION = Section(
    "idle_keys", ("reduce and window count, 1,000 keys", "records/s", ""), row, measure
)
