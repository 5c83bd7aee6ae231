"""The worker's side alone: a line to a process that only sleeps, whose words the test says."""

from __future__ import annotations

import asyncio
import logging
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from duetime.model.job import Token
from duetime.model.outcome import Failed, Succeeded
from duetime.model.reports import Progress
from duetime.runtime.running.children.messages import (
    ChildMessage,
    ChildReady,
    ForwardedRecord,
    RunEnded,
    RunJob,
    RunProgress,
    encode_child_message,
    open_lifeline,
)
from duetime.runtime.running.children.process import ChildProcess
from duetime.runtime.running.handler import TaskLocation, TaskModule
from duetime.runtime.running.run import Run, RunOutput, current_run
from tests.unit.runtime.kit import claim

JOB = RunJob(TaskLocation(TaskModule("module"), "function"), claim(), 0, None)
SUCCESS = RunEnded.of(Succeeded("1"), memory=0)
OTHER = Token("another job", 1, "claim")


class Line:
    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def say(self, *words: ChildMessage) -> None:
        self.end.sendall(b"".join(map(encode_child_message, words)))


class Ears:
    captures_logs = True

    def notice(self, output: RunOutput) -> None:
        """Leave it all to the last words."""


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    ours, theirs = socket.socketpair()
    held, other = open_lifeline()
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], process_group=0)
    monkeypatch.setattr(
        "duetime.runtime.running.children.process.launch_process",
        lambda: (process, ours, held),
    )
    with theirs, other:
        yield Line(theirs)
    process.kill()
    process.wait()


def logged(text: str, token: Token | None) -> ForwardedRecord:
    return ForwardedRecord(
        token=token, attributes={"name": "child", "levelno": logging.ERROR, "msg": text, "process": 1}
    )


@pytest.mark.parametrize("size", [1, 5_000_000])
async def test_an_answer_that_was_there_in_time_counts_though_the_loop_was_held_up(
    line: Line, size: int
) -> None:
    answer = Succeeded("1" * size)
    child = ChildProcess([])
    line.say(ChildReady())
    await child.ready.wait()
    calling = asyncio.create_task(child.call(RunJob(JOB.address, JOB.claim, 0, timeout=1)))
    await asyncio.sleep(0)

    def say() -> None:
        line.say(RunEnded.of(answer, memory=0))
        line.end.shutdown(socket.SHUT_WR)

    saying = asyncio.create_task(asyncio.to_thread(say))
    await asyncio.sleep(0)
    select.select([child._socket], [], [], 20)
    assert await asyncio.wait_for(calling, 20) == answer
    await saying


async def test_without_an_answer_in_time_the_child_is_killed(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = ChildProcess([])
    kill = child.kill

    def kill_and_hang_up() -> None:
        kill()
        line.end.close()

    monkeypatch.setattr(child, "kill", kill_and_hang_up)
    line.say(ChildReady())
    with pytest.raises(TimeoutError):
        await child.call(RunJob(JOB.address, JOB.claim, 0, timeout=1))
    assert child.death == "killed by its worker"


async def test_a_killed_child_is_buried_though_every_thread_of_the_loop_is_taken(line: Line) -> None:
    release = Event()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    taken = asyncio.create_task(asyncio.to_thread(release.wait))
    await asyncio.sleep(0)
    child = ChildProcess([])
    try:
        child.kill()
        line.end.close()
        await asyncio.wait_for(child.ended(), 20)
    finally:
        release.set()
        await taken
    assert child.death == "killed by its worker"


async def test_a_word_that_was_cut_off_is_the_end_of_the_line(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    child = ChildProcess([])
    line.say(ChildReady())
    calling = asyncio.create_task(child.call(JOB))
    await child.ready.wait()
    line.end.sendall(encode_child_message(SUCCESS)[:-9])
    line.end.shutdown(socket.SHUT_WR)
    outcome = await asyncio.wait_for(calling, 20)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "crashed child"
    assert child._life.exception() is None
    assert caplog.records == []


async def test_a_child_that_cannot_be_understood_is_killed_and_the_log_says_why(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    child = ChildProcess([])
    line.say(ChildReady())
    calling = asyncio.create_task(child.call(JOB))
    await child.ready.wait()
    line.end.sendall(b"nonsense\n")
    outcome = await asyncio.wait_for(calling, 20)
    assert isinstance(outcome, Failed)
    assert outcome.error.endswith("died while it ran the job: killed by its worker")
    assert "cannot be understood: DecodeError" in caplog.text


async def test_a_filter_that_raises_takes_no_child_down(line: Line) -> None:
    def refuse(record: logging.LogRecord) -> bool:
        raise RuntimeError(record.name)

    refusing = [logging.getLogger("child"), logging.getLogger("duetime.worker")]
    child = ChildProcess([])
    for logger in refusing:
        logger.addFilter(refuse)
    try:
        line.say(ChildReady())
        await child.ready.wait()
        calling = asyncio.create_task(child.call(JOB))
        await asyncio.sleep(0)
        line.say(logged("refused", None), SUCCESS)
        assert await asyncio.wait_for(calling, 20) == Succeeded("1")
    finally:
        for logger in refusing:
            logger.removeFilter(refuse)
    line.end.close()
    await child.ended()


async def test_what_another_job_says_late_is_not_taken_for_this_ones(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(claim(), started_at=0, reader=Ears())
    current_run.set(run)
    owners: dict[str, Run | None] = {}

    class Owners(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            owners[record.getMessage()] = current_run.get(None)

    child, handler, mine = ChildProcess([]), Owners(), run.claim.token
    logging.getLogger("child").addHandler(handler)
    try:
        line.say(ChildReady(), RunProgress(mine, 0.1, "mine"))
        await child.ready.wait()
        calling = asyncio.create_task(child.call(JOB))
        await asyncio.sleep(0)
        line.say(logged("mine", mine), logged("another's", OTHER), logged("nobody's", None))
        line.say(RunProgress(mine, 0.1, "mine"), RunProgress(OTHER, 0.9, "another's"), SUCCESS)
        await asyncio.wait_for(calling, 20)
    finally:
        logging.getLogger("child").removeHandler(handler)
    assert owners == {"mine": run, "another's": None, "nobody's": None}
    assert run.output is not None
    assert run.output.take_rest().progress == Progress(mine, 0.1, "mine")
    line.end.close()
    await child.ended()
