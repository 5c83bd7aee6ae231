"""Measure the first minute: from `git clone` to the demo's first answer, and from a second start to the next.

`python -m tools.demo_time`; exits with 1 where one of them takes longer than it may.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from tools.servers.process import free_port

ROOT = Path(__file__).resolve().parent.parent
FIRST, SECOND = 40.0, 5.0
"""How long a start may take, in seconds, on two cores and with packages in pip's cache."""
_GIVEN_UP = 300.0
_LOOK = 0.05


def main() -> None:
    """Clone, start twice, and print how long it took."""
    with tempfile.TemporaryDirectory(prefix="duetime-clone-") as name:
        clone = Path(name) / "duetime"
        began = time.monotonic()
        subprocess.run(["/usr/bin/env", "git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        first = _until_it_answers(clone, began)
        second = _until_it_answers(clone, time.monotonic())
    print(f"from git clone to the first answer: {first:.1f} s (at most {FIRST:.0f})")
    print(f"from a second start to its first answer: {second:.1f} s (at most {SECOND:.0f})")
    sys.exit(first > FIRST or second > SECOND)


def _until_it_answers(clone: Path, began: float) -> float:
    port = free_port()
    # As in a new terminal: without an environment that is active, and not below another make.
    environment = {n: v for n, v in os.environ.items() if n != "VIRTUAL_ENV" and not n.startswith("MAKE")}
    command = ["/usr/bin/env", "make", "demo", f"PORT={port}"]
    with subprocess.Popen(
        command, cwd=clone, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    ) as demo:
        try:
            while not _answers(port):
                if demo.poll() is not None or time.monotonic() - began > _GIVEN_UP:
                    sys.exit("the demo did not answer")
                time.sleep(_LOOK)
            return time.monotonic() - began
        finally:
            _stop(demo)


def _stop(demo: subprocess.Popen[bytes]) -> None:
    """End the demo and all of its processes, and wait until they are gone."""
    os.killpg(demo.pid, signal.SIGTERM)
    demo.wait()
    with contextlib.suppress(ProcessLookupError):
        while True:
            os.killpg(demo.pid, 0)
            time.sleep(_LOOK)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5):
            return True
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


if __name__ == "__main__":
    main()
