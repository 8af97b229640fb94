"""Cost of a slot of micro-batches in a resident process, compared with one in Spark's worker.

Only the location differs. Both run the same code with the same garbage collector settings.
"""

import tempfile
import time

from benchmarks.cases import BY_NAME, Case
from benchmarks.measure import Arguments, Figures, check_count, report, steady_rates
from benchmarks.peers.firesteel_jobs import Counting, Firesteel, results
from benchmarks.sections.section import Section
from benchmarks.text import rate_text, ratio_text

_CASES = ("map_filter", "reduce_1k")
# The hop may cost 10 %.
_GOAL = 0.9


class Placed:
    """Runs cases with slots in one of the two locations."""

    def __init__(self, parallelism: int, slot_host: str) -> None:
        settings = {"firesteel.execution": "micro-batch", "firesteel.slot-host": slot_host}
        self.peer = Firesteel(parallelism, settings)

    def run(self, case: Case, records: int) -> float:
        """Run the case and check the number of records that were read.

        The sinks are not checked, because a slot and its sink may move to a different worker.
        """
        env = self.peer.environment()
        with tempfile.TemporaryDirectory() as directory:
            for stream in results(env, case, records):
                stream.add_sink(Counting(directory))
            begin = time.perf_counter()
            client = env.execute_async(case.name)
            client.get_job_execution_result().result()
            seconds = time.perf_counter() - begin
        sources = client.get_overview()["vertices"][0]["subtasks"]
        check_count(case.name, sum(subtask["records_in"] for subtask in sources), records)
        return seconds


def measure(arguments: Arguments) -> None:
    for name in _CASES:
        case = BY_NAME[name]
        hosts = {
            host: Placed(arguments.parallelism, host).run for host in ("in-worker", "resident")
        }
        found = steady_rates(
            case,
            hosts,
            records=arguments.records_of(case, case.records),
            repeats=arguments.repeats,
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
