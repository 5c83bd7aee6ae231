"""Following jobs from a terminal, with a real worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from duetime.cli import main

APP = """
from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from duetime import Scheduler, current_job

scheduler = Scheduler("sqlite:///jobs.db")
log = logging.getLogger("app")


@scheduler.task
async def tell(gate: str) -> None:
    log.info("it begins, with a bell \\x07")
    current_job().progress(0.25, "waiting")
    while not Path(gate).exists():
        await asyncio.sleep(0.01)
    log.info("it ends")


@scheduler.task(retries=[0])
async def fail() -> None:
    log.info("this is try %d", current_job().attempt)
    raise LookupError("nobody there")
"""

URL = ("--url", "sqlite:///jobs.db")


@pytest.fixture(autouse=True)
def shop(folder: Path) -> None:
    """An application of its own."""
    (folder / "shop.py").write_text(APP)


def duetime(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command whose output can be read while it goes on."""
    command = [sys.executable, "-m", "duetime.cli", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def worker() -> Iterator[None]:
    with started("worker", "shop:scheduler") as process:
        read_until(process, "working on")
        yield


def read_until(process: subprocess.Popen[str], text: str) -> list[str]:
    """Read what a process says until a line has the text, and return the lines."""
    assert process.stdout is not None
    seen: list[str] = []
    for line in process.stdout:
        seen.append(line.rstrip())
        if text in line:
            return seen
    raise AssertionError(f"it never said {text!r}:\n" + "\n".join(seen))


def enqueue(task: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "duetime.cli", "enqueue", "shop:scheduler", f"shop.{task}", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.usefixtures("worker")
def test_a_job_can_be_followed_until_it_ends(folder: Path) -> None:
    job_id = enqueue("tell", "gate=gate")
    with started("jobs", "tail", job_id, *URL) as process:
        lines = read_until(process, "25%")
        (folder / "gate").touch()
        lines += read_until(process, "succeeded")
        assert process.wait(20) == 0
    told = [line.partition("Z ")[2] or line.partition("== ")[2] for line in lines]
    started_, begins, progress, ends, ended = [line for line in told if "pending" not in line]
    assert started_.endswith(f"{job_id} shop.tell running, try 1")
    assert begins == "INFO app: it begins, with a bell \\x07"
    assert progress == "25% waiting"
    assert ends == "INFO app: it ends"
    assert ended.endswith(f"{job_id} shop.tell succeeded, try 1")


@pytest.mark.usefixtures("worker")
def test_the_exit_code_is_that_of_the_job() -> None:
    job_id = enqueue("fail")
    followed = duetime("jobs", "tail", job_id, "--json", *URL)
    assert followed.exit_code == 1
    told = [json.loads(line) for line in followed.stdout.splitlines()]
    assert (told[-1]["kind"], told[-1]["state"], told[-1]["attempt"]) == ("state", "failed", 2)
    assert told[-1]["error"] == "LookupError: nobody there"
    parts = [(line["attempt"], line["text"].partition("Z ")[2]) for line in told if line["kind"] == "log"]
    assert parts == [(1, "INFO app: this is try 1"), (2, "INFO app: this is try 2")]


@pytest.mark.usefixtures("worker")
def test_logs_are_printed_try_by_try() -> None:
    job_id = enqueue("fail")
    followed = duetime("jobs", "logs", job_id, "--follow", *URL)
    printed = duetime("jobs", "logs", job_id, *URL)
    assert followed.stdout == printed.stdout
    first, between, second = printed.stdout.splitlines()
    assert (first.partition("Z ")[2], between) == ("INFO app: this is try 1", "== try 2")
    assert second.endswith("INFO app: this is try 2")
    listed = json.loads(duetime("jobs", "logs", job_id, "--json", *URL).stdout)
    assert [part["attempt"] for part in listed] == [1, 2]


@pytest.mark.usefixtures("worker")
def test_all_jobs_can_be_followed_until_ctrl_c(folder: Path) -> None:
    with started("jobs", "tail", "--json", *URL) as process:
        job_id = enqueue("tell", "gate=gate")
        [line] = read_until(process, '"running"')
        assert json.loads(line)["id"] == job_id
        (folder / "gate").touch()
        read_until(process, '"succeeded"')
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


@pytest.mark.parametrize("command", [("logs",), ("logs", "--follow"), ("tail",)])
def test_an_unknown_job_has_its_exit_code(command: tuple[str, ...]) -> None:
    duetime("migrate", *URL)
    answer = duetime("jobs", *command, "0123", *URL)
    assert (answer.exit_code, answer.stderr) == (
        3,
        "Error: there is no job 0123; it never existed or its record was pruned\n",
    )
