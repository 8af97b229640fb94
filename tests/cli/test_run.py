"""``firesteel run`` without a session: the program in its own process, with REST."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from firesteel.client.rest_client import RestClient
from tests.cli.conftest import Commands
from tests.waiting import wait_until

Write = Callable[..., Path]


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_program_serves_its_jobs_while_it_runs(commands: Commands, write: Write) -> None:
    program = write("""
import sys
from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
import beside

env = StreamExecutionEnvironment.get_execution_environment()
source = DataGeneratorSource(lambda number: number, 10**9, RateLimiterStrategy.per_second(50))
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), sys.argv[1])
numbers.map(beside.twice).print()
env.execute("application")
""")
    program.with_name("beside.py").write_text("def twice(number):\n    return 2 * number\n")
    running = commands.start("run", "-p", "2", "-Drest.port=0", str(program), "from the shell")
    try:
        assert running.stderr is not None
        assert running.stdout is not None
        url = running.stderr.readline().split("Dashboard: ")[1].strip()
        submitted = running.stdout.readline()
        job_id = re.fullmatch(r"Job has been submitted with JobID ([0-9a-f]{32})\n", submitted)
        assert job_id is not None
        client = RestClient(url)
        details = client.get(f"/jobs/{job_id[1]}")
        assert details["name"] == "application"
        assert any("from the shell" in vertex["name"] for vertex in details["vertices"])
        assert max(vertex["parallelism"] for vertex in details["vertices"]) == 2
        address = url.removeprefix("http://")
        assert f"{job_id[1]} : application" in commands("list", "-a", "-m", address)
        wait_until(lambda: client.get(f"/jobs/{job_id[1]}/status")["status"] == "RUNNING")
        while not running.stdout.readline().strip().endswith("8"):
            pass
        client.patch(f"/jobs/{job_id[1]}?mode=cancel")
        assert running.wait(60) == 1
        assert "was cancelled" in running.stderr.read().lower().replace("canceled", "cancelled")
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()


def test_a_program_without_a_job_is_an_error(commands: Commands, write: Write) -> None:
    output = commands("run", "-Drest.port=0", str(write("print('done')")), code=1)
    assert "done" in output
    assert "Perhaps you forgot to call execute()" in output


def test_an_error_of_the_program_is_shown_without_our_frames(
    commands: Commands, write: Write
) -> None:
    output = commands("run", "-Drest.port=0", str(write("x = {}\nx['missing']")), code=1)
    assert "The program finished with the following exception:" in output
    assert "KeyError: 'missing'" in output
    assert "firesteel/cli" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "Missing the program"),
        (["run", "nothing.py"], "There is no program nothing.py"),
        (["run", "-d", "job.py"], "There is no program job.py"),
        (["cancel", "abc"], "32 hexadecimal digits"),
        (["savepoint"], "Usage"),
        (["list", "-m", "localhost"], "host:port"),
        (["list", "-m", "localhost:1"], "No session answers at http://localhost:1"),
        (["stop", "-m", "localhost:1", "0" * 32], "Could not stop with a savepoint job"),
        (["run", "-Dparalelism.default=2", "x.py"], "There is no program x.py"),
    ],
)
def test_mistakes_are_explained(commands: Commands, arguments: list[str], message: str) -> None:
    from click.testing import CliRunner

    from firesteel.cli.main import main

    result = CliRunner().invoke(main, arguments)
    assert result.exit_code != 0 or arguments == ["savepoint"]
    assert message in result.output


def test_every_command_has_help_with_an_example() -> None:
    import click
    from click.testing import CliRunner

    from firesteel.cli.main import main

    def leaves(command: click.Command, path: tuple[str, ...]) -> list[tuple[str, ...]]:
        if isinstance(command, click.Group):
            return [
                leaf
                for name, child in command.commands.items()
                for leaf in leaves(child, (*path, name))
            ]
        return [path]

    without = [
        path
        for path in leaves(main, ())
        if "firesteel" not in CliRunner().invoke(main, [*path, "--help"]).output.partition("Ex")[2]
    ]
    assert without == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_commands(shell: str) -> None:
    from click.testing import CliRunner

    from firesteel.cli.main import main

    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_FIRESTEEL_COMPLETE" in result.output


@pytest.mark.parametrize(
    ("words", "incomplete", "expected"),
    [
        ([], "sa", ["savepoint"]),
        (["session"], "st", ["start", "stop"]),
        (["stop"], "--sa", ["--savepointPath"]),
        (["stop", "--type"], "", ["canonical", "native"]),
    ],
)
def test_completions(words: list[str], incomplete: str, expected: list[str]) -> None:
    from click.shell_completion import BashComplete

    from firesteel.cli.main import main

    completer = BashComplete(main, {}, "firesteel", "_FIRESTEEL_COMPLETE")
    assert [one.value for one in completer.get_completions(words, incomplete)] == expected
