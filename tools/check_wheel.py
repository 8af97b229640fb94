"""Installs the built wheel into an empty environment and runs a program with it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

_PROGRAM = """
from importlib.resources import files

from firesteel.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
env.from_sequence(1, 3).map(lambda n: n * n).print()
env.execute("wheel")
assert files("firesteel.dashboard").joinpath("static", "index.html").is_file(), "no dashboard"
"""
_EXPECTED = ["1", "4", "9"]


def main(directory: str) -> None:
    """Check the one wheel in ``directory``; a failure ends the process with a message."""
    (wheel,) = Path(directory).glob("*.whl")
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        python = str(Path(place, "bin", "python"))
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, str(wheel)], check=True)
        ran = subprocess.run(
            [python, "-c", _PROGRAM], check=True, cwd=place, stdout=subprocess.PIPE, text=True
        )
    if ran.stdout.split() != _EXPECTED:
        sys.exit(f"{wheel.name}: expected {_EXPECTED}, and the program printed {ran.stdout!r}")
    sys.stderr.write(f"{wheel.name} runs a program\n")


if __name__ == "__main__":
    main(sys.argv[1])
