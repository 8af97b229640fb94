"""Runs a command until its parent ends, so that no server outlives the tests.

``python -m tests.servers.leash command ...``; the end of standard input is the end of the command,
also where the tests were killed.
"""

from __future__ import annotations

import subprocess
import sys
import threading


def main() -> int:
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL) as server:
        threading.Thread(target=_kill_at_end_of_input, args=[server], daemon=True).start()
        return server.wait()


def _kill_at_end_of_input(server: subprocess.Popen[bytes]) -> None:
    sys.stdin.buffer.read()
    server.kill()


if __name__ == "__main__":
    sys.exit(main())
