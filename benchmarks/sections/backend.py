"""Keyed reductions with state in RocksDB, compared with state in memory."""

import importlib.util

from benchmarks.cases import BY_NAME
from benchmarks.measure import Arguments, Figures, report, report_skipped, steady_rates
from benchmarks.peers.firesteel_jobs import Firesteel
from benchmarks.sections.section import Section
from benchmarks.text import rate_text, ratio_text

_RECORDS = {"reduce_1k": 8_000_000, "reduce_1m": 4_000_000}
_BACKENDS = ("hashmap", "rocksdb")


def measure(arguments: Arguments) -> None:
    if importlib.util.find_spec("rocksdict") is None:
        report_skipped("backend", "rocksdb", "not installed: pip install 'firesteel[rocksdb]'")
        return
    for name, records in _RECORDS.items():
        case = BY_NAME[name]
        runs = {
            kind: Firesteel(arguments.parallelism, {"state.backend.type": kind}).run
            for kind in _BACKENDS
        }
        found = steady_rates(
            case,
            runs,
            records=arguments.records_of(case, records),
            repeats=arguments.repeats,
            seconds=30,
        )
        base = found["hashmap"].rate
        for kind, measured in found.items():
            ratio = measured.rate / base if measured.rate and base else None
            report(section="backend", case=name, backend=kind, rate=measured.rate, ratio=ratio)


def row(figures: Figures) -> list[str]:
    title = BY_NAME[figures["case"]].title
    return [title, figures["backend"], rate_text(figures["rate"]), ratio_text(figures["ratio"])]


SECTION = Section("backend", ("state backend", "", "records/s", ""), row, measure)
