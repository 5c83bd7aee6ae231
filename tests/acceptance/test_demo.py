"""The example application, started as a user starts it."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from duetime import Event, demo
from duetime.demo import run
from duetime.demo.app import print_outcome
from duetime.model.events import EventKind
from tools.servers.process import free_port

LINE = re.compile(r"pid (\d+)  (\w+)\((.*)\)  try (\d+)  (\d+\.\d) ms late")


class Demo:
    """A demo that is running."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
        self.printed = ""

    def ask(self, method: str, path: str) -> Any:
        answer = self.http.request(method, path)
        answer.raise_for_status()
        return answer.json()

    def until_up(self) -> None:
        while True:
            try:
                self.ask("GET", "/")
            except httpx.TransportError:
                assert self.process.poll() is None, self.printed
                time.sleep(0.05)
            else:
                return

    def until_printed(self, text: str, *, times: int) -> None:
        assert self.process.stdout is not None
        while self.printed.count(text) < times:
            line = self.process.stdout.readline()
            assert line, self.printed
            self.printed += line

    def stop(self, number: signal.Signals, *, group: bool = False) -> float:
        """Send a signal, take in the rest of what is printed, and return how long the stop took."""
        began = time.monotonic()
        (os.killpg if group else os.kill)(self.process.pid, number)
        rest, _ = self.process.communicate(timeout=30)
        self.printed += rest
        return time.monotonic() - began

    def survivors(self) -> list[int]:
        """Return the processes of the demo's group that live a moment after it ended."""
        deadline = time.monotonic() + 2
        while (alive := _group(self.process.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return alive


@contextmanager
def running(folder: Path, *, delay: str = "1") -> Iterator[Demo]:
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-m", "duetime.demo"],
        cwd=folder,
        env={**os.environ, "PORT": str(port), "DEMO_DELAY": delay},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        demo = Demo(process, port)
        try:
            demo.until_up()
            yield demo
        finally:
            demo.http.close()
            for pid in _group(process.pid):
                os.kill(pid, signal.SIGKILL)


def _group(leader: int) -> list[int]:
    """Return the living processes of a process group."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = entry.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(group) == leader and state != "Z":
            found.append(int(entry.parent.name))
    return found


def test_each_mail_is_sent_once_by_one_of_four_processes_and_a_signal_stops_them_all(tmp_path: Path) -> None:
    with running(tmp_path) as demo:
        assert any("send_email_notification" in line for line in demo.ask("GET", "/")["try"])
        path = "/send_email_notification?user_id=1234&message=hello"
        first, second = demo.ask("PUT", path), demo.ask("PUT", path)
        demo.until_printed("send_email(", times=2)
        demo.until_printed("send_email  try 1  ok", times=2)
        assert {job["job"] for job in demo.ask("GET", "/jobs")} >= {first["job"], second["job"]}
        commands = [line for line in demo.ask("GET", "/")["try"] if "duetime jobs list" in line]
        listed = subprocess.run(
            ["/bin/sh", "-c", commands[0]], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert first["job"] in listed.stdout

        took = demo.stop(signal.SIGTERM)

        assert demo.process.returncode == 0
        assert took < 10
        assert demo.survivors() == []
    runs = [match.groups() for match in LINE.finditer(demo.printed) if match[2] == "send_email"]
    assert [groups[2:4] for groups in runs] == [("user_id=1234, message='hello'", "1")] * 2
    assert first["job"] != second["job"]
    assert str(tmp_path / "duetime-demo.db") in demo.printed
    assert "curl -X PUT" in demo.printed


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (EventKind.JOB_SUCCEEDED, "\x1b[32mok\x1b[0m"),
        (EventKind.JOB_RETRYING, "\x1b[33mfailed, is tried again\x1b[0m: OSError: no"),
        (EventKind.JOB_FAILED, "\x1b[31mfailed for good\x1b[0m: OSError: no"),
    ],
)
def test_outcomes_have_colours_on_a_terminal_only(
    kind: EventKind, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = None if kind is EventKind.JOB_SUCCEEDED else "OSError: no"
    event = Event(kind=kind, at=datetime.now(UTC), worker="w", task="app.mail", attempt=2, error=error)
    shown = f"pid {os.getpid()}  mail  try 2  {says}"
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert _printed_on_terminal(event, monkeypatch) == shown
    monkeypatch.setenv("NO_COLOR", "1")
    assert _printed_on_terminal(event, monkeypatch) == re.sub(r"\x1b\[\d+m", "", shown)


def _printed_on_terminal(event: Event, monkeypatch: pytest.MonkeyPatch) -> str:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", terminal)
        print_outcome(event)
        printed = os.read(ours, 1000)
    os.close(ours)
    return printed.decode().rstrip()


def test_a_mail_outlives_the_processes_that_accepted_it(tmp_path: Path) -> None:
    with running(tmp_path, delay="5") as demo:
        demo.ask("PUT", "/send_email_notification?user_id=7&message=later")
        took = demo.stop(signal.SIGINT, group=True)
        assert took < 10
        assert demo.survivors() == []
        assert "send_email(" not in demo.printed

    with running(tmp_path) as demo:
        demo.until_printed("send_email(user_id=7", times=1)
        demo.stop(signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_process_that_does_not_stop_in_time_is_killed(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_STOP_WITHIN", 0.01)
    # uvicorn's supervisor handles all of them.
    before = {each: signal.signal(each, lambda *_: None) for each in {number, signal.SIGTERM}}
    child = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    child.start()
    try:
        with demo._stop_in_time() as stopping:
            os.kill(os.getpid(), number)
            child.join(10)
            assert child.exitcode == -signal.SIGKILL
            assert stopping.is_set()
    finally:
        child.kill()
        for each, handler in before.items():
            signal.signal(each, handler)


def test_a_busy_port_is_named_with_the_variable_that_changes_it(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ended = subprocess.run(
            [sys.executable, "-m", "duetime.demo"],
            cwd=tmp_path,
            env={**os.environ, "PORT": str(port)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 1
    assert f"port {port}" in ended.stderr
    assert "PORT=" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("port", ["ten", "0", "65536", "-1"])
def test_a_port_that_is_none_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(port) == 1
    assert "PORT must be a whole number" in capsys.readouterr().err


def test_without_the_web_packages_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert run(free_port()) == 1
    assert "duetime[web]" in capsys.readouterr().err
