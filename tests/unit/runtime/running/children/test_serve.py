"""The child's side alone: a line to a process, without the worker that would kill it."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from duetime.model.outcome import Cancelled
from duetime.runtime.identity import is_gone
from duetime.runtime.running.children.messages import (
    ChildMessage,
    ChildReady,
    ForwardedRecord,
    RunEnded,
    RunJob,
    StopJob,
    child_message_decoder,
    encode_worker_message,
)
from duetime.runtime.running.children.process import launch_process, setup_line
from duetime.runtime.running.children.serve import _EXIT_GRACE
from duetime.runtime.running.handler import TaskLocation, TaskModule
from tests.integration import cpu_tasks, ledger, tasks
from tests.unit.runtime.kit import claim

WHO = RunJob(TaskLocation(TaskModule(cpu_tasks.__name__), "who"), claim(), 0, None)
SPIN = RunJob(TaskLocation(TaskModule(tasks.__name__), "spin"), claim(), 0, None)
HEED = RunJob(TaskLocation(TaskModule(tasks.__name__), "heed_in_thread"), claim(), 0, None)


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the end of the line tells")


class Peer:
    def __init__(self) -> None:
        self.process, self.connection, self.lifeline = launch_process()
        self.connection.settimeout(20)
        self.connection.sendall(setup_line([]))
        self._lines = self.connection.makefile("rb")

    def send(self, *orders: RunJob | StopJob) -> None:
        self.connection.sendall(b"".join(map(encode_worker_message, orders)))

    def hear(self) -> ChildMessage:
        return child_message_decoder.decode(self._lines.readline())

    def hang_up(self, *, within: float) -> int:
        self.connection.shutdown(socket.SHUT_RDWR)
        return self.process.wait(within)

    def close(self) -> None:
        self._lines.close()
        self.connection.close()
        self.lifeline.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    monkeypatch.setenv(ledger.VARIABLE, str(tmp_path / "ledger"))
    made = Peer()
    yield made
    made.close()


def test_a_child_runs_one_job_after_the_other(peer: Peer) -> None:
    assert peer.hear() == ChildReady()
    for _ in range(2):
        peer.send(WHO)
        ended = peer.hear()
        assert isinstance(ended, RunEnded)
        assert ended.values["result"] == str(peer.process.pid)
        assert ended.memory > 1_000_000


@pytest.mark.covers("cpu-orphan")
def test_a_child_that_waits_ends_when_the_line_does(peer: Peer) -> None:
    assert peer.hear() == ChildReady()
    assert peer.hang_up(within=20) == 0


@pytest.mark.covers("cpu-orphan")
def test_a_child_at_work_ends_when_the_line_does(peer: Peer, tmp_path: Path) -> None:
    assert peer.hear() == ChildReady()
    peer.send(SPIN)
    while not (tmp_path / "ledger").exists():
        assert peer.process.poll() is None
    assert peer.hang_up(within=_EXIT_GRACE - 1) == -signal.SIGKILL


def test_a_request_to_stop_that_comes_together_with_the_job_is_not_lost(peer: Peer) -> None:
    peer.send(HEED, StopJob("no longer wanted"))
    assert peer.hear() == ChildReady()
    ended = peer.hear()
    assert isinstance(ended, RunEnded)
    assert ended.read() == Cancelled("no longer wanted")


@pytest.mark.covers("cpu-orphan")
@LINUX
def test_the_end_of_the_lifeline_kills_a_child_that_does_not_let_go_and_what_it_started(
    peer: Peer, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    assert peer.hear() == ChildReady()
    arguments = claim(payload=msgspec.json.encode({"pid_file": str(pid_file)}).decode())
    peer.send(RunJob(TaskLocation(TaskModule(tasks.__name__), "seize"), arguments, 0, None))
    while not (tmp_path / "ledger").exists():
        assert peer.process.poll() is None
    peer.lifeline.close()
    assert peer.process.wait(20) == -signal.SIGKILL
    program = int(pid_file.read_text(encoding="ascii"))
    while not is_gone(program, None):
        os.sched_yield()


@LINUX
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_of_the_worker_does_not_keep_its_children_alive(peer: Peer) -> None:
    assert peer.hear() == ChildReady()
    fork = os.fork()
    if fork == 0:
        signal.pause()
    try:
        peer.lifeline.close()
        assert peer.process.wait(20) == -signal.SIGKILL
    finally:
        os.kill(fork, signal.SIGKILL)
        os.waitpid(fork, 0)


def test_a_child_whose_worker_is_gone_by_now_does_not_start() -> None:
    process, connection, lifeline = launch_process()
    with connection:
        lifeline.close()
        connection.sendall(setup_line([]))
        assert process.wait(20) == 1


def test_a_child_whose_worker_dies_before_it_says_anything_ends_quietly(
    capfd: pytest.CaptureFixture[str],
) -> None:
    process, connection, lifeline = launch_process()
    connection.close()
    assert process.wait(20) == 1
    lifeline.close()
    assert capfd.readouterr().err == ""


def test_an_order_that_cannot_be_read_ends_the_child(peer: Peer) -> None:
    assert peer.hear() == ChildReady()
    peer.connection.sendall(b'{"kind": "dance"}\n')
    said = peer.hear()
    assert isinstance(said, ForwardedRecord)
    assert "restart the worker" in said.attributes["msg"]
    assert peer.process.wait(20) == 1


def test_a_child_imports_nothing_from_the_folder_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "socket", "duetime", "msgspec"):
        text = f"open({name!r} + '-was-here', 'w')\nraise SystemExit(9)\n"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(Path(entry).resolve()) for entry in sys.path if entry])
    peer = Peer()
    try:
        assert peer.hear() == ChildReady()
    finally:
        peer.close()
    assert list(tmp_path.glob("*-was-here")) == []
