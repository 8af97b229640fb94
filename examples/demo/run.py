"""Live demo for `make demo`: clicks of a web shop with late data, checkpoints and crashes.

Clicks arrive out of order. Some are late, some are too late for every window, and some are broken.
Sliding windows count them per page, and the job takes a checkpoint every second. On request (key
`c`, or `--crash-after`) a task crashes, and the job continues from its last checkpoint. In the end
every click has been counted exactly once. A terminal shows a live view; a pipe gets one line per
event. Both show how long clicks take from the source to keyed state. A browser shows the dashboard
at the address that the demo prints.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import ctrl_c  # noqa: F401 - it must come before the modules that take a second
from view import open_view

from firesteel.common import Configuration, Duration, JobStatus, Time, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.datastream import (
    AggregateFunction,
    KeyedProcessFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.state import ValueStateDescriptor
from firesteel.datastream.window import SlidingEventTimeWindows
from firesteel.rest.server import serve_program

PAGES = ("home", "home", "home", "search", "search", "cart", "cart", "books", "help")
CLICKS_PER_SECOND = 2_000
SLOTS = 2
BROKEN_EVERY = 9_973
STRAGGLER_EVERY = 37
LOST_EVERY = 499

OUT_OF_ORDERNESS = 1_500
WINDOW, SLIDE, LATENESS = 6, 2, 2

ORDERS = {
    "crash": "crash: a function will raise an exception",
    "kill": "kill -9: the process of a slot will die, and Spark will run its task again",
}

# Page, user, the moment of the click, and the time at which the source read it.
CLICK = Types.TUPLE([Types.STRING(), Types.STRING(), Types.LONG(), Types.DOUBLE()])
BROKEN = OutputTag("broken", Types.STRING())
LATE = OutputTag("late", CLICK)
LATENCY = OutputTag("latency", Types.TUPLE([Types.DOUBLE(), Types.DOUBLE()]))


class Clicks:
    """Generates click number `index`, always the same one, because tasks may run again.

    Only its last field, the time at which it is read, differs.
    """

    def __init__(self, count):
        self.part = max(1, count // SLOTS)
        self.start = int(time.time() * 1_000)

    def __call__(self, index):
        # Each reader gets one part of the numbers. Both parts cover the same span of time.
        made = self.start + index % self.part * 1_000 * SLOTS // CLICKS_PER_SECOND
        dice = index * 2_654_435_761 % 2**32
        delay = dice % 1_000
        if index % STRAGGLER_EVERY == 0:
            delay = 3_000 + dice % 4_000
        if index % LOST_EVERY == 0:
            delay = 15_000 + dice % 5_000
        page = PAGES[dice % len(PAGES)]
        if made - self.start > 8_000 and dice % 7 < 3:
            page = "sale"
        if index % BROKEN_EVERY == 1_234:
            page = ""
        return f"user-{dice % 997};{page};{made - delay};{time.time()}"


class Check(ProcessFunction):
    """Parses a line, or sends it to a side output. Crashes on request."""

    def __init__(self, orders):
        self.orders = orders

    def open(self, runtime_context):
        self.checked = 0

    def process_element(self, value, ctx):
        self.checked += 1
        if self.checked % 100 == 0:
            self.obey()
        user, page, moment, read_at = value.split(";")
        if not page:
            yield BROKEN, f"a click of {user} has no page"
            return
        yield page, user, int(moment), float(read_at)

    def obey(self):
        """Execute a pending request. The subtask that deletes its file executes it."""
        for order in ORDERS:
            try:
                Path(self.orders, order).unlink()
            except FileNotFoundError:
                continue
            if order == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("a crash was requested")


class Moment(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[2]


class Count(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class WithWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield context.window().end, key, next(iter(elements))


class Total(KeyedProcessFunction):
    """Counts all clicks of a page, also late ones. Emits the total every second of event time.

    Its side output has the median and the 99th percentile of the milliseconds from the source to
    here, every second.
    """

    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.latencies = []
        self.emit_at = time.time() + 1

    def process_element(self, value, ctx):
        self.total.update((self.total.value() or 0) + 1)
        now = time.time()
        self.latencies.append(1_000 * (now - value[3]))
        if now >= self.emit_at:
            ranked = sorted(self.latencies)
            yield LATENCY, (ranked[len(ranked) // 2], ranked[len(ranked) * 99 // 100])
            self.latencies.clear()
            self.emit_at = now + 1
        # The timer is later than the click, so the end of the stream emits the final total.
        ctx.timer_service().register_event_time_timer((ctx.timestamp() // 1_000 + 1) * 1_000)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), self.total.value()


def build(env, clicks, count, orders):
    """Build the job. Return its output streams.

    These are windows, totals, late clicks, broken clicks and latencies.
    """
    source = DataGeneratorSource(
        clicks,
        count=count,
        rate_limiter_strategy=RateLimiterStrategy.per_second(CLICKS_PER_SECOND),
    )
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "Clicks", Types.STRING())
    checked = lines.process(Check(orders), CLICK).name("Check")
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(OUT_OF_ORDERNESS))
    by_page = checked.assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(Moment())
    ).key_by(lambda click: click[0], Types.STRING())
    windows = (
        by_page.window(SlidingEventTimeWindows.of(Time.seconds(WINDOW), Time.seconds(SLIDE)))
        .allowed_lateness(LATENESS * 1_000)
        .side_output_late_data(LATE)
        .aggregate(Count(), WithWindow())
        .name("Count in windows")
    )
    totals = by_page.process(Total()).name("Count for good")
    late, broken = windows.get_side_output(LATE), checked.get_side_output(BROKEN)
    return windows, totals, late, broken, totals.get_side_output(LATENCY)


def configuration(checkpoints):
    settings = Configuration()
    settings.set_string("execution.checkpointing.interval", "1 s")
    settings.set_string("execution.checkpointing.dir", f"file://{checkpoints}")
    settings.set_string("restart-strategy.type", "fixed-delay")
    settings.set_string("restart-strategy.fixed-delay.attempts", "10")
    settings.set_string("restart-strategy.fixed-delay.delay", "1 s")
    # The first free port.
    settings.set_string("rest.bind-port", "8081-8180")
    return settings


def follow(client, view, orders, crash_after):
    """Update the view until the job ends, and forward the requests of the user."""
    began = None
    while client.get_job_status().result() not in (
        JobStatus.FINISHED,
        JobStatus.FAILED,
        JobStatus.CANCELED,
    ):
        view.show(client)
        if view.has_results() and began is None:
            began = time.monotonic()
        order = view.pressed()
        if crash_after is not None and began and time.monotonic() - began > crash_after:
            order, crash_after = "crash", None
        if order == "quit":
            raise KeyboardInterrupt
        if view.is_closed:
            raise BrokenPipeError
        if order is not None:
            Path(orders, order).touch()
            view.tell(ORDERS[order])
        time.sleep(0.1)
    client.get_job_execution_result().result()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seconds", type=float, help="duration of the clickstream (terminal: 120 s, pipe: 30 s)"
    )
    parser.add_argument(
        "--crash-after", type=float, help="seconds from the first window to a crash of a task"
    )
    arguments = parser.parse_args()
    seconds = arguments.seconds or (120.0 if sys.stdout.isatty() else 30.0)
    crash_after = arguments.crash_after
    if crash_after is None and not sys.stdout.isatty():
        # Without a terminal there are no key presses.
        crash_after = seconds / 6
    count = int(CLICKS_PER_SECOND * seconds) // SLOTS * SLOTS

    with tempfile.TemporaryDirectory() as scratch:
        orders, checkpoints = Path(scratch, "orders"), Path(scratch, "checkpoints")
        orders.mkdir()
        settings = configuration(checkpoints)
        address = serve_program(settings).url
        env = StreamExecutionEnvironment.create_local_environment_with_web_ui(settings)
        env.set_parallelism(SLOTS)
        streams = build(env, Clicks(count), count, str(orders))
        collected = [stream.collect_async() for stream in streams]
        print(env.explain(), flush=True)
        client = None
        try:
            with open_view(address, *collected) as view:
                client = env.execute_async("clicks")
                follow(client, view, orders, crash_after)
                view.end(client)
        except (KeyboardInterrupt, BrokenPipeError):
            if client is not None:
                client.cancel().result()
            raise
        broken = len(range(1_234, count, BROKEN_EVERY))
        print(
            f"{view.total():,} of {count - broken:,} good clicks counted, each exactly once; "
            f"{view.late:,} were too late for every window, {view.broken:,} of {broken:,} were broken.",
            flush=True,
        )
        if view.total() != count - broken:
            sys.exit("The numbers do not agree: this is a bug in Firesteel.")
        if sys.stdin.isatty() and sys.stdout.isatty():
            input(f"The dashboard stays at {address} until you press Enter.")


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        print("\nCanceled.", file=sys.stderr)
        # The reader of a pipe may be gone, too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(130)
