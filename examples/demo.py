"""What `make demo` runs: clicks of a web shop are checked, counted by page, and ranked.

The plan comes first, then one line a second with the leading pages, broken clicks as they are found,
and a summary on standard error. `--seconds` says how long it shall take.
"""

from __future__ import annotations

import argparse
import sys
import time

from firesteel.common import Configuration, JobStatus, Types
from firesteel.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy

PAGES = ("home", "home", "home", "search", "search", "cart", "cart", "books", "help")
CLICKS_PER_SECOND = 2_000
SALE_STARTS_AT = 4 * CLICKS_PER_SECOND
BROKEN_EVERY = 4_999
BAR_WIDTH = 16

BROKEN = OutputTag("broken", Types.STRING())


def click(index):
    """Click number `index`: the same one whenever it is asked for, because tasks may run again."""
    shuffled = index * 2_654_435_761 % 2**32
    page = PAGES[shuffled % len(PAGES)]
    if index >= SALE_STARTS_AT and shuffled % 7 < 3:
        page = "sale"
    if index % BROKEN_EVERY == 1_234:
        page = ""
    return f"user-{shuffled % 997};{page}"


class Check(ProcessFunction):
    """Splits a line into user and page; what cannot be split goes to the side output."""

    def open(self, runtime_context):
        self.clicks = runtime_context.get_metrics_group().counter("clicks")

    def process_element(self, value, ctx):
        self.clicks.inc()
        user, _, page = value.partition(";")
        if not page:
            yield BROKEN, f"a click of {user} has no page"
            return
        yield page, 1


class Ranking(ProcessFunction):
    """Keeps the newest count of each page, and shows the leaders once a second."""

    def open(self, runtime_context):
        self.counts = {}
        self.due = None

    def process_element(self, value, ctx):
        page, clicks = value
        self.counts[page] = clicks
        now = time.monotonic()
        if self.due is not None and now >= self.due:
            yield leaders(self.counts)
        if self.due is None or now >= self.due:
            self.due = now + 1.0


def leaders(counts):
    """The first three pages: a bar for the share of each, and its number of clicks."""
    scale = 2 * BAR_WIDTH / sum(counts.values())
    ranked = sorted(counts.items(), key=lambda item: -item[1])[:3]
    return "   ".join(
        f"{page:<6} {'█' * min(BAR_WIDTH, round(scale * clicks)):<{BAR_WIDTH}} {clicks:>6,}"
        for page, clicks in ranked
    )


def build(env, seconds):
    source = DataGeneratorSource(
        click,
        count=int(CLICKS_PER_SECOND * seconds),
        rate_limiter_strategy=RateLimiterStrategy.per_second(CLICKS_PER_SECOND),
    )
    clicks = env.from_source(source, None, "Clicks", Types.STRING())
    pages = clicks.process(Check(), Types.TUPLE([Types.STRING(), Types.LONG()])).name("Check")
    pages.get_side_output(BROKEN).print("broken").name("Print broken clicks")
    totals = pages.key_by(lambda page: page[0]).sum(1).name("Count by page")
    ranking = totals.process(Ranking(), Types.STRING()).set_parallelism(1).name("Ranking")
    ranking.print("leaders").set_parallelism(1).name("Print leaders")


def follow(client, expected):
    """Wait for the end; the seconds it took. On a terminal one line shows how far the job is."""
    progress = sys.stderr.isatty()
    started = time.monotonic()
    done = 0
    while client.get_job_status().result() in (JobStatus.CREATED, JobStatus.RUNNING):
        if not done:
            # Starting Spark and the slot hosts is not part of the rate.
            started = time.monotonic()
        time.sleep(0.1)
        done = client.get_metrics().get("Check.clicks", {}).get("count", 0)
        if progress:
            sys.stderr.write(f"\r  {done:,} of {expected:,} clicks\x1b[K\r")
            sys.stderr.flush()
    if progress:
        sys.stderr.write("\x1b[K")
    client.get_job_execution_result().result()
    return time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0, help="how long clicks come in")
    seconds = parser.parse_args().seconds

    settings = Configuration().set_string("pipeline.name", "clicks")
    env = StreamExecutionEnvironment.get_execution_environment(settings)
    env.set_parallelism(2)
    build(env, seconds)
    print(env.explain(), flush=True)
    print("Spark is starting; the first line follows in a few seconds.", file=sys.stderr)

    client = None
    try:
        client = env.execute_async("clicks")
        took = follow(client, int(CLICKS_PER_SECOND * seconds))
    except KeyboardInterrupt:
        if client is not None:
            client.cancel().result()
        print("\nCanceled.", file=sys.stderr)
        return

    clicks = client.get_metrics()["Check.clicks"]["count"]
    epochs = client.get_overview()["epochs"]
    print(
        f"{clicks:,} clicks in {epochs} epochs and {took:.1f} s: {clicks / took:,.0f} records/s. "
        f"The generator held them to {CLICKS_PER_SECOND:,} a second; "
        "`make bench` shows what is possible without.",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
