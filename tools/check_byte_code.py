"""Runs the tests of the byte code reader on the Python versions that pyproject.toml names.

``make test`` runs the whole suite on one version. The byte code differs between versions, so this
program runs ``tests/task/codegen/test_expressions.py`` on the others. It looks for them on the
search path and in pyenv, and gives each a small environment below ``.pythons``. A version that is
not installed gets a line; the matrix of the workflow tests all versions.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

_REPOSITORY = Path(__file__).parent.parent
_ENVIRONMENTS = _REPOSITORY / ".pythons"
_ROOM = "tests/task/codegen"
_TESTS = f"{_ROOM}/test_expressions.py"
# The reader itself needs nothing but the standard library.
_NEEDED = ("hypothesis", "pytest")
_NAMED = re.compile(r"Programming Language :: Python :: (3\.\d+)")


def main() -> None:
    project = tomllib.loads((_REPOSITORY / "pyproject.toml").read_text())["project"]
    named = [match[1] for c in project["classifiers"] if (match := _NAMED.fullmatch(c))]
    own = f"3.{sys.version_info.minor}"
    failed = []
    for version in named:
        if version == own:
            say(f"Python {version}: in the whole suite")
        elif (python := find_python(version)) is None:
            say(f"Python {version}: not installed here, left to the workflow")
        else:
            say(f"Python {version}: {python}")
            if not run_tests(environment(version, python, requirements(project))):
                failed.append(version)
    if failed:
        sys.exit(f"The byte code reader is wrong on Python {', '.join(failed)}.")


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def requirements(project: dict[str, Any]) -> list[str]:
    """Return what the tests need, in the versions that the project asks for."""
    development = project["optional-dependencies"]["dev"]
    return [line for line in development if re.split(r"\W", line)[0] in _NEEDED]


def find_python(version: str) -> Path | None:
    """Return an interpreter of this version that works, or None."""
    name = f"python{version}"
    found = [Path(folder, name) for folder in os.get_exec_path()]
    if shutil.which("pyenv") is not None:
        # Its commands on the search path only start versions that are switched on.
        installed = _output("pyenv", "versions", "--bare").split()
        patches = [patch for patch in installed if patch.rpartition(".")[0] == version]
        found += [Path(_output("pyenv", "prefix", patch), "bin", name) for patch in patches]
    question = "import sys; print(sys.implementation.name, *sys.version_info[:2], sep='.')"
    for python in found:
        if python.is_file() and _output(str(python), "-c", question) == f"cpython.{version}":
            return python
    return None


def environment(version: str, python: Path, packages: list[str]) -> Path:
    """Return the interpreter of an environment with the packages, made if it is not there."""
    folder = _ENVIRONMENTS / version
    stamp, wanted = folder / ".installed", "\n".join([str(python), *packages])
    interpreter = folder / "bin" / "python"
    if not stamp.is_file() or stamp.read_text() != wanted:
        # Without its own pip, because some systems deliver that apart from Python.
        subprocess.run([python, "-m", "venv", "--clear", "--without-pip", folder], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(interpreter), "install"]
        subprocess.run([*pip, "--quiet", "--disable-pip-version-check", *packages], check=True)
        stamp.write_text(wanted)
    return interpreter


def run_tests(python: Path) -> bool:
    # The other conftest.py on the way to the tests need all of Firesteel's dependencies.
    options = ["-p", "tests.conftest", f"--confcutdir={_ROOM}", "-p", "no:cacheprovider", "-q"]
    # Options of plugins that are not installed here.
    plain = ["-o", "addopts=--import-mode=importlib"]
    done = subprocess.run(
        [python, "-m", "pytest", *options, *plain, _TESTS], cwd=_REPOSITORY, check=False
    )
    return done.returncode == 0


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
