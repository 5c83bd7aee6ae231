from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from duetime.runtime.identity import process_started
from duetime.runtime.upkeep import janitor as neighbours
from duetime.runtime.upkeep.janitor import ProcessWatcher, WatchedProcess

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="descriptors of processes are a part of Linux"
)


@contextmanager
def living() -> Generator[WatchedProcess]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        yield WatchedProcess(process.pid, process_started(process.pid))
    finally:
        process.kill()
        process.wait()


def kill(process: WatchedProcess) -> None:
    os.kill(process.pid, 9)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def never() -> None:
    raise AssertionError("heard of an end")


async def test_the_end_of_a_process_is_heard_of_once() -> None:
    ends: asyncio.Queue[None] = asyncio.Queue()
    with living() as process, closing(ProcessWatcher(lambda: ends.put_nowait(None))) as watching:
        assert watching.watch([process])
        assert watching.watch([process])
        kill(process)
        await asyncio.wait_for(ends.get(), 10)
        await asyncio.sleep(0)
        assert ends.empty()


async def test_a_process_that_is_no_neighbour_any_more_is_not_listened_to() -> None:
    with living() as process, living() as other:
        ended = asyncio.Event()
        with closing(ProcessWatcher(ended.set)) as watching:
            watching.watch([process, other])
            watching.watch([other])
            kill(process)
            await asyncio.sleep(0.05)
            assert not ended.is_set()
            kill(other)
            await asyncio.wait_for(ended.wait(), 10)


async def test_nothing_is_left_open() -> None:
    before = descriptors()
    with living() as process:
        watching = ProcessWatcher(never)
        watching.watch([process])
        watching.close()
    assert descriptors() == before


async def test_this_process_needs_no_watch() -> None:
    before = descriptors()
    with closing(ProcessWatcher(never)) as watching:
        assert watching.watch([WatchedProcess(os.getpid(), None)])
        assert descriptors() == before


async def test_a_process_that_has_ended_cannot_be_watched() -> None:
    with living() as process:
        pass
    with closing(ProcessWatcher(never)) as watching:
        assert not watching.watch([process])


async def test_another_process_with_the_same_id_is_not_mistaken_for_it() -> None:
    with living() as process, closing(ProcessWatcher(never)) as watching:
        assert process.started is not None
        assert not watching.watch([process._replace(started=str(int(process.started) - 1))])
        assert watching.watch([])


async def test_of_very_many_processes_only_some_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "_MAX_WATCHED", 1)
    with living() as one, living() as another, closing(ProcessWatcher(never)) as watching:
        assert not watching.watch([one, another])
        assert watching.watch([one]) or watching.watch([another])


async def test_where_the_kernel_does_not_tell_nobody_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_pid: int) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "pidfd_open", refuse)
    with living() as process, closing(ProcessWatcher(never)) as watching:
        assert not watching.watch([process])


async def test_a_python_that_was_built_without_descriptors_of_processes_watches_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    with living() as process, closing(ProcessWatcher(never)) as watching:
        assert not watching.watch([process])
