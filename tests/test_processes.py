from __future__ import annotations

import os
import subprocess
import sys

from firesteel.processes import is_alive


def test_a_process_is_alive_until_it_has_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert is_alive(os.getpid())
    assert is_alive(child.pid)
    child.communicate(b"\n")
    assert not is_alive(child.pid)
