"""How long an epoch takes that has next to nothing to do, against the micro-batch of a bare query."""

from benchmarks.cases import double
from benchmarks.measure import Arguments, Figures, report
from benchmarks.peers.firesteel_jobs import Counting, Firesteel, numbers, timed
from benchmarks.sections.section import Section
from benchmarks.text import ratio_text

_RECORDS = 100
# The difference between many and few epochs: starting the job cancels out.
_FEW, _MANY = 15, 75
_EXCHANGES = (0, 1, 2, 3)
# An epoch may take so many times as long as a micro-batch.
_GOAL = 1.3


def epochs(peer: Firesteel, count: int, exchanges: int) -> float:
    env = peer.environment()
    stream = numbers(env, 0, count * _RECORDS).map(double)
    for _ in range(exchanges):
        stream = stream.rebalance().map(double)
    stream.add_sink(Counting())
    return timed(env, "epochs")


def measure(arguments: Arguments) -> None:
    setting = {"firesteel.epoch.max-records": str(_RECORDS // arguments.parallelism)}
    peer = Firesteel(arguments.parallelism, setting)
    for exchanges in _EXCHANGES:
        seconds = epochs(peer, _MANY, exchanges) - epochs(peer, _FEW, exchanges)
        milliseconds = seconds / (_MANY - _FEW) * 1_000
        report(section="epoch", exchanges=exchanges, milliseconds=milliseconds)


def row(figures: Figures) -> list[str]:
    """`floor` is what the bare query takes, once that is known."""
    exchanges, milliseconds = figures["exchanges"], figures["milliseconds"]
    title = f"{exchanges} exchange{'' if exchanges == 1 else 's'}"
    floor = figures.get("floor")
    if floor is None:
        return [title, f"{milliseconds:.0f} ms", "", ""]
    ratio = milliseconds / floor
    mark = " !" if ratio > _GOAL else ""
    return [title, f"{milliseconds:.0f} ms", f"{floor:.0f} ms", ratio_text(ratio) + mark]


SECTION = Section("epoch", ("epoch of 100 records", "Firesteel", "bare query", ""), row, measure)
