"""What a slot in a resident process costs, against one inside Spark's worker.

Nothing but the place differs: both run the same code with the same settings of the garbage collector.
"""

from benchmarks.cases import BY_NAME
from benchmarks.measure import Arguments, Figures, report, steady_rates
from benchmarks.peers.firesteel_jobs import Firesteel
from benchmarks.sections.section import Section
from benchmarks.text import rate_text, ratio_text

_CASES = ("map_filter", "reduce_1k")
# Of a case's records: two cases run in two places and two turns, within two minutes.
_SHARE = 0.3
# The hop may cost a tenth.
_GOAL = 0.9


def measure(arguments: Arguments) -> None:
    for name in _CASES:
        case = BY_NAME[name]
        hosts = {
            host: Firesteel(arguments.parallelism, {"firesteel.slot-host": host}).run
            for host in ("in-worker", "resident")
        }
        found = steady_rates(
            case,
            hosts,
            records=arguments.records_of(case, int(case.records * _SHARE)),
            repeats=arguments.repeats,
            seconds=75,
        )
        base = found["in-worker"].rate
        for host, measured in found.items():
            ratio = measured.rate / base if measured.rate and base else None
            report(section="hop", case=name, slot_host=host, rate=measured.rate, ratio=ratio)


def row(figures: Figures) -> list[str]:
    return [
        figures["case"],
        figures["slot_host"],
        rate_text(figures["rate"]),
        ratio_text(figures["ratio"], _GOAL),
    ]


SECTION = Section("hop", ("slot host", "", "records/s", "of in-worker"), row, measure)
