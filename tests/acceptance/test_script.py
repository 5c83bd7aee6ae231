"""A script that ends with `scheduler.run()`, as a real process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from duetime import Scheduler
from duetime.errors import BlockingCallInLoop
from tests.acceptance.kit import duetime, from_json, until

SCRIPT = """
from duetime import Scheduler

scheduler = Scheduler("sqlite:///jobs.db")


@scheduler.task
def greet(name: str) -> str:
    return f"hello {name}"


if __name__ == "__main__":
    LOGGING
    scheduler.run(concurrency=5OPTIONS)
"""


@contextmanager
def script(folder: Path, logging: str = "pass", options: str = "") -> Iterator[subprocess.Popen[str]]:
    folder.joinpath("shop.py").write_text(SCRIPT.replace("LOGGING", logging).replace("OPTIONS", options))
    with subprocess.Popen(
        [sys.executable, "shop.py"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_script_works_until_a_signal_stops_it(folder: Path, number: signal.Signals) -> None:
    with script(folder) as process:
        assert f"working on sqlite:///jobs.db in {folder}: " in until(process, "stop with Ctrl-C")
        job_id = duetime("enqueue", "shop:scheduler", "shop.greet", "name=Ann").stdout.strip()
        until(process, f"job {job_id} of shop.greet succeeded")
        process.send_signal(number)
        assert process.wait(20) == 0
    assert from_json("jobs", "show", job_id, "--url", "sqlite:///jobs.db")["result"] == "hello Ann"


def test_a_script_that_has_said_where_logs_go_is_obeyed(folder: Path) -> None:
    with script(
        folder, 'import logging; logging.basicConfig(level="INFO", format="MINE %(message)s")'
    ) as process:
        assert until(process, "stop with Ctrl-C").startswith("MINE ")
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_script_may_work_in_several_processes(folder: Path) -> None:
    with script(folder, options=", processes=2, max_jobs=1") as process:
        until(process, "supervising 2 workers")
        for name in ("Ann", "Bob", "Eve"):
            job_id = duetime("enqueue", "shop:scheduler", "shop.greet", f"name={name}").stdout.strip()
            until(process, f"job {job_id} of shop.greet succeeded")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_a_script_without_a_main_guard_is_refused_where_it_is_imported(folder: Path) -> None:
    folder.joinpath("bare.py").write_text(
        "from duetime import Scheduler\n\nscheduler = Scheduler()\nscheduler.run()\n"
    )
    refused = duetime("worker", "bare:scheduler")
    assert refused.exit_code == 2
    assert "importing bare failed at " in refused.stderr
    assert "bare.py:4: " in refused.stderr
    assert 'write it below: if __name__ == "__main__":' in refused.stderr


async def test_a_script_cannot_run_inside_a_loop() -> None:
    with pytest.raises(BlockingCallInLoop, match=r"async with scheduler, scheduler.worker\(\): \.\.\."):
        Scheduler("sqlite://").run()


def test_a_program_that_is_no_file_cannot_be_started_in_several_processes() -> None:
    code = "from duetime import Scheduler; Scheduler('sqlite://').run(processes=2)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ConfigError: processes and reload start this program anew" in ended.stderr
