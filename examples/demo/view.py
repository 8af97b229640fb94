"""Views of the demo: a live display on a terminal, one line per event in a pipe."""

from __future__ import annotations

import select
import sys
import termios
import threading
import time
import tty
from collections import deque
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from firesteel.errors import FiresteelError

BAR_WIDTH = 40
KEYS = {"c": "crash", "k": "kill", "q": "quit"}


@contextmanager
def open_view(address, *streams):
    """Open the view for the kind of standard output, with the collected streams as input."""
    if not sys.stdout.isatty():
        yield LineView(*streams)
        return
    with unbuffered_keys(), Live(console=Console(), refresh_per_second=8) as live:
        yield LiveView(live, address, *streams)


@contextmanager
def unbuffered_keys():
    """Deliver key presses without Enter if standard input is a terminal."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def clock(millis):
    return time.strftime("%H:%M:%S", time.localtime(millis / 1_000))


class View:
    """Current results of the job, read from its streams by one thread each.

    A crash repeats no record of these streams.
    """

    def __init__(self, windows, totals, late, broken, latencies):
        self.counts = {}
        self.totals = {}
        self.late = 0
        self.broken = 0
        self.updates = 0
        self.last_window = 0
        self.news: deque[str] = deque(maxlen=8)
        self.restored = 0
        self.completed = 0
        self.latency = (0.0, 0.0)
        readers = (
            (windows, self.window),
            (totals, self.page_total),
            (late, self.late_click),
            (broken, self.broken_click),
            (latencies, self.measured),
        )
        # The reader of standard output has gone.
        self.is_closed = False
        self.threads = [
            threading.Thread(target=self.read, args=reader, daemon=True) for reader in readers
        ]
        for thread in self.threads:
            thread.start()

    def read(self, stream, take):
        try:
            for record in stream:
                take(record)
        except BrokenPipeError:
            self.is_closed = True
        except FiresteelError:
            # The main thread waits for the job, and raises the same error.
            return

    def window(self, result):
        end, page, clicks = result
        pages = self.counts.setdefault(end, {})
        if page in pages:
            self.updates += 1
        pages[page] = clicks
        # Show a window when a later one has started to fire. Then it has the counts of all pages.
        if end > self.last_window:
            if self.last_window:
                self.window_fired(self.last_window)
            self.last_window = end

    def window_fired(self, end):
        pass

    def page_total(self, result):
        page, clicks = result
        self.totals[page] = clicks

    def late_click(self, click):
        self.late += 1

    def broken_click(self, message):
        self.broken += 1

    def measured(self, latency):
        self.latency = latency

    def latency_text(self):
        """Return the latency of the last second, from the source to keyed state."""
        median, slow = self.latency
        return f"{median:.1f} ms median, {slow:.1f} ms 99th percentile"

    def total(self):
        return sum(self.totals.values())

    def has_results(self):
        return bool(self.counts)

    def tell(self, message):
        self.news.append(f"{time.strftime('%H:%M:%S')}  {message}")

    def pressed(self):
        return None

    def show(self, client):
        """Read the checkpoint statistics and report a recovery."""
        checkpoints = client.get_checkpoints()
        self.completed = checkpoints["counts"]["completed"]
        restored = checkpoints["counts"]["restored"]
        if restored > self.restored:
            self.restored = restored
            number = checkpoints["latest"]["restored"]["id"]
            self.tell(f"a task failed; the job returned to checkpoint {number} and continues")

    def end(self, client):
        for thread in self.threads:
            thread.join()
        self.show(client)
        if self.last_window:
            self.window_fired(self.last_window)


class LineView(View):
    def window_fired(self, end):
        ranked = sorted(self.counts[end].items(), key=lambda item: -item[1])
        pages = "  ".join(f"{page} {clicks:,}" for page, clicks in ranked[:4])
        print(f"window until {clock(end)}: {pages}  latency {self.latency_text()}", flush=True)

    def broken_click(self, message):
        super().broken_click(message)
        print(message, flush=True)

    def tell(self, message):
        super().tell(message)
        print(message, flush=True)


class LiveView(View):
    def __init__(self, live, address, *streams):
        self.live = live
        self.address = address
        super().__init__(*streams)
        live.update(Text("Spark is starting ..."))

    def pressed(self):
        if not sys.stdin.isatty() or not select.select([sys.stdin], [], [], 0)[0]:
            return None
        return KEYS.get(sys.stdin.read(1).lower())

    def show(self, client):
        super().show(client)
        if self.has_results():
            self.live.update(self.picture(client))

    def end(self, client):
        super().end(client)
        self.live.update(self.picture(client))

    def picture(self, client):
        return Group(
            Panel(self.ranking(), title=f"clicks by page, window until {clock(self.shown())}"),
            Panel(self.facts(client), title="job"),
            Panel("\n".join(self.news) or "nothing yet", title="events"),
            Text(
                f"c: crash a task   k: kill -9 its process   q: quit   dashboard: {self.address}",
                style="dim",
            ),
        )

    def shown(self):
        """Return the end of the newest window that has fired for all pages."""
        ends = sorted(self.counts)
        return ends[-2] if len(ends) > 1 else ends[-1]

    def ranking(self):
        counts = dict(self.counts[self.shown()])
        table = Table.grid(padding=(0, 2))
        most = max(counts.values())
        for page, clicks in sorted(counts.items(), key=lambda item: -item[1]):
            table.add_row(page, Text("█" * round(BAR_WIDTH * clicks / most)), f"{clicks:,}")
        return table

    def facts(self, client):
        latest = client.get_checkpoints()["latest"]["completed"]
        table = Table.grid(padding=(0, 2))
        table.add_row("clicks counted", f"{self.total():,}")
        table.add_row("latency", self.latency_text())
        table.add_row("late, counted again", f"{self.updates:,} windows fired again")
        table.add_row("too late", f"{self.late:,} to the side output")
        table.add_row("broken", f"{self.broken:,}")
        if latest is not None:
            table.add_row(
                "checkpoints",
                f"{self.completed} complete; number {latest['id']} took "
                f"{latest['end_to_end_duration']} ms and has {latest['state_size']:,} bytes",
            )
        table.add_row("recoveries", f"{self.restored}")
        return table
