"""What a slot in a resident process costs, against one inside Spark's worker."""

from benchmarks.cases import BY_NAME
from benchmarks.measure import Arguments, Figures, report, steady_rates
from benchmarks.peers.firesteel_jobs import Firesteel
from benchmarks.sections.section import Section
from benchmarks.text import rate_text

_CASES = ("map_filter", "reduce_1k")
# Of a case's records: this section runs two cases twice within a minute.
_SHARE = 0.4


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
            seconds=30,
        )
        for host, measured in found.items():
            report(section="hop", case=name, slot_host=host, rate=measured.rate)


def row(figures: Figures) -> list[str]:
    return [figures["case"], figures["slot_host"], rate_text(figures["rate"])]


SECTION = Section("hop", ("slot host", "", "records/s"), row, measure)
