"""Picture of the command line: a session, a job, its bottleneck, a rescale and a stop, as SVG.

Run with ``python -m tools.figures.command_line``. It takes about a minute and needs Java for Spark.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.text import Text

from tools.figures.demo import write

_PROGRAM = """
import time
from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from firesteel.datastream.functions import SinkFunction

class Warehouse(SinkFunction):
    def invoke(self, value, context):
        pass

def enrich(order):
    time.sleep(0.001)
    return order % 7, 1

env = StreamExecutionEnvironment.get_execution_environment()
source = DataGeneratorSource(lambda number: number, 10**9, RateLimiterStrategy.per_second(1_500))
orders = env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
enriched = orders.rebalance().map(enrich).name("enrich")
enriched.key_by(lambda order: order[0]).sum(1).name("totals").add_sink(Warehouse()).name("warehouse")
env.execute("orders")
"""
# JOB stands for the id of the job, ADDRESS for that of the session.
_COMMANDS = (
    "session start -d",
    "run -m ADDRESS -d -p 1 orders.py",
    "list",
    "info JOB",
    "rescale -p 2 JOB",
    "stop -p savepoints JOB",
    "session stop",
)
_ADDRESS = "localhost:8081"
_WARM_SECONDS = 25.0
_RESTART_SECONDS = 10.0


def record() -> Text:
    """Run the commands in a scratch directory, and return what a terminal shows."""
    shown = Text()
    with tempfile.TemporaryDirectory() as scratch:
        home, job, address = Path(scratch), "", ""
        (home / "orders.py").write_text(_PROGRAM)
        environment = {**os.environ, "FIRESTEEL_HOME": str(home / "home")}

        def firesteel(*words: str) -> str:
            done = subprocess.run(
                [sys.executable, "-m", "firesteel", *words],
                cwd=home,
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                if words[0] != "session":
                    firesteel("session", "stop")
                raise RuntimeError(f"firesteel {' '.join(words)} failed")
            return done.stdout

        for command in _COMMANDS:
            words = command.replace("JOB", job).replace("ADDRESS", address).split()
            if words[:2] == ["session", "start"]:
                words += ["--port", "0"]
            if words[0] == "info":
                time.sleep(_WARM_SECONDS)
            if words[0] == "stop":
                time.sleep(_RESTART_SECONDS)
            output = firesteel(*words)
            if not address:
                (known,) = json.loads(firesteel("session", "list", "--json"))["sessions"]
                address = known["url"].rpartition("//")[2]
            if words[0] == "run":
                job = re.findall("[0-9a-f]{32}", output)[0]
            shown.append("$ ", style="bold green")
            written = command.replace("JOB", job).replace("ADDRESS", _ADDRESS)
            shown.append(f"firesteel {written}\n", style="bold")
            # The reader's machine has other directories and the usual port.
            shown.append(output.replace(address, _ADDRESS).replace(scratch, "/home/ada"))
    shown.rstrip()
    return shown


if __name__ == "__main__":
    write(record(), "command-line.svg", title="firesteel", columns=112)
