"""Files, requirements and archives travel to a session, and results come back while a job runs."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Commands

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

Write = Callable[..., Path]


def wheel(directory: Path) -> None:
    """Write the wheel of a package ``spices``."""
    directory.mkdir()
    facts = "spices-1.0.dist-info"
    with zipfile.ZipFile(directory / "spices-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("spices.py", "SALT = 'salt'")
        archive.writestr(f"{facts}/METADATA", "Metadata-Version: 2.1\nName: spices\nVersion: 1.0\n")
        archive.writestr(
            f"{facts}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{facts}/RECORD", "")


def test_requirements_and_archives_travel_with_a_job(
    session: Commands, write: Write, tmp_path: Path
) -> None:
    wheel(tmp_path / "wheels")
    with zipfile.ZipFile(tmp_path / "numbers.zip", "w") as archive:
        archive.writestr("factor.txt", "10")
    (tmp_path / "requirements.txt").write_text("spices==1.0\n")
    program = write("""
from firesteel.datastream import StreamExecutionEnvironment

def season(number):
    import spices
    with open("numbers/factor.txt") as file:
        return f"{number * int(file.read())} {spices.SALT}"

env = StreamExecutionEnvironment.get_execution_environment()
print("seasoned", list(env.from_collection([1, 2]).map(season).execute_and_collect()))
""")
    output = session(
        "run",
        "-m",
        session.address,
        "-pyreq",
        f"{tmp_path / 'requirements.txt'}#{tmp_path / 'wheels'}",
        "-pyarch",
        f"{tmp_path / 'numbers.zip'}#numbers",
        str(program),
    )
    assert "seasoned ['10 salt', '20 salt']" in output


def test_results_of_an_endless_job_come_back_while_it_runs(session: Commands, write: Write) -> None:
    program = write("""
from firesteel.common import WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy

env = StreamExecutionEnvironment.get_execution_environment()
source = DataGeneratorSource(lambda number: number, 10**9, RateLimiterStrategy.per_second(100))
numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
with numbers.execute_and_collect("endless") as results:
    for number in results:
        if number == 50:
            print("enough")
            break
""")
    output = session("run", "-m", session.address, str(program))
    assert "enough" in output
    job_id = output.partition("JobID ")[2].split()[0]
    # The end of the iterator has ended the job.
    session.wait_for_state(job_id, "CANCELED")
