from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.docs.snippets import ROOT, read_blocks
from tools.servers.process import free_port

PROCESSES = 2
MAILS = 10
PATIENCE = 30.0


@pytest.fixture(scope="module")
def diff() -> list[str]:
    blocks = read_blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    (text,) = (block.text for block in blocks if block.language == "diff")
    return text.splitlines()


def test_the_readme_adds_five_lines(diff: list[str]) -> None:
    assert sum(line.startswith("+") for line in diff) == 5


@pytest.mark.covers("empty-folder")
def test_the_application_before_and_after_answers_and_after_runs_each_job_once(
    diff: list[str], tmp_path: Path
) -> None:
    before = [line[1:] for line in diff if not line.startswith("+")]
    after = [line[1:] for line in diff if not line.startswith("-")]

    with serving(before, tmp_path / "before", processes=1) as application:
        application.put_mail(0)
        assert application.mails() == ["to user 0: hello"]

    with serving(after, tmp_path / "after", processes=PROCESSES) as application:
        for user_id in range(MAILS):
            application.put_mail(user_id)
        wait_until(lambda: application.states() == ["succeeded"] * MAILS)

    assert sorted(application.mails()) == [f"to user {user_id}: hello" for user_id in range(MAILS)]


class Application:
    """The README's application under uvicorn."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._address = f"http://127.0.0.1:{port}"

    def put_mail(self, user_id: int) -> None:
        query: dict[str, str | int] = {"user_id": user_id, "message": "hello"}
        httpx.put(
            f"{self._address}/send_email_notification", params=query, timeout=PATIENCE
        ).raise_for_status()

    def answers(self) -> bool:
        try:
            return httpx.get(f"{self._address}/openapi.json", timeout=PATIENCE).is_success
        except httpx.TransportError:
            return False

    def mails(self) -> list[str]:
        output = (self._folder / "output").read_text(encoding="utf-8")
        return [line for line in output.splitlines() if line.startswith("to user")]

    def states(self) -> list[str]:
        with closing(sqlite3.connect(self._folder / "duetime.db")) as connection:
            return [state for (state,) in connection.execute("SELECT state FROM duetime_jobs")]


@contextmanager
def serving(lines: list[str], folder: Path, *, processes: int) -> Iterator[Application]:
    folder.mkdir()
    (folder / "app.py").write_text("\n".join(lines), encoding="utf-8")
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "app:app", "--port", str(port), "--workers", str(processes)]
    with (folder / "output").open("wb") as output:
        server = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        try:
            application = Application(folder, port)
            wait_until(application.answers)
            yield application
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(PATIENCE)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


FAILING = """
from fastapi import FastAPI
from duetime import Scheduler

scheduler = Scheduler()
app = FastAPI(lifespan=scheduler.lifespan)

@scheduler.task
async def send_email(user_id: int, message: str) -> None:
    print("to user", user_id, flush=True)
    raise RuntimeError(f"{message}: the mail server is away")

@app.put("/send_email_notification")
async def notify(user_id: int, message: str) -> None:
    await send_email.enqueue(user_id, message)
"""


def test_an_application_that_has_set_up_no_logging_shows_the_traceback_of_a_failed_job(
    tmp_path: Path,
) -> None:
    with serving(FAILING.splitlines(), tmp_path / "failing", processes=1) as application:
        application.put_mail(7)
        wait_until(lambda: application.states() == ["failed"])
    said = (tmp_path / "failing" / "output").read_text(encoding="utf-8").splitlines()
    [start] = [n for n, line in enumerate(said) if "of app.send_email failed (attempt 1, " in line]
    assert said[start].endswith("): RuntimeError: hello: the mail server is away")
    assert said[start + 1] == "  Traceback (most recent call last):"
    assert 'raise RuntimeError(f"{message}: the mail server is away")' in said[start + 3]
    assert said[start + 4] == "  RuntimeError: hello: the mail server is away"
