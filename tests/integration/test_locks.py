from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

import pytest

from duetime.locks import DistributedLock, open_lock
from duetime.locks.file import FileLock
from tests.integration import lock_process

ROUNDS = 100
PATIENCE = 50


class Process:
    """A process with a lock, on the other end of two pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, url: str, *, ttl: float = 30) -> Process:
        command = (sys.executable, lock_process.__file__, url, str(ttl))
        pipe = asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))

    def tell(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n".encode())

    async def hear(self) -> list[str]:
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            return (await self.process.stdout.readline()).decode().split()

    async def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()


class StartProcess(Protocol):
    """Starts a process with a lock; it ends with the test."""

    async def __call__(self, url: str, *, ttl: float = 30) -> Process: ...


@pytest.fixture
async def start() -> AsyncIterator[StartProcess]:
    processes: list[Process] = []

    async def start(url: str, *, ttl: float = 30) -> Process:
        processes.append(await Process.start(url, ttl=ttl))
        return processes[-1]

    yield start
    for process in processes:
        await process.end()


async def silent(url: str, *, ttl: float) -> int:
    """Take the lock as a process does that is never heard of again."""
    lock = open_lock(url, "raced")
    lock.ttl = round(ttl * 1_000_000)
    while (fence := (await lock.try_take(token="silent", holder="silent")).fence) is None:
        owner = await lock.owner()
        if owner is not None:
            await lock.try_release(token=owner.token)
    return fence


def inode_of(file: Path) -> int:
    return file.stat().st_ino


async def race(url: str, start: StartProcess, *, rounds: int) -> None:
    lock = open_lock(url, "raced")
    racers = await asyncio.gather(*(start(url) for _ in range(4)))
    last = 0
    for turn in range(rounds):
        fence = await silent(url, ttl=0.02)
        for racer in racers:
            racer.tell(f"race {fence}")
        said = [await racer.hear() for racer in racers]
        assert sorted(word for word, _ in said) == ["lost", "lost", "lost", "won"]
        [new] = {int(number) for _, number in said}
        assert last < fence < new
        last = new
        if turn % 10 == 9:
            owner = await lock.owner()
            assert owner is not None
            assert await lock.try_release(token=owner.token)
            assert await lock.cleanup() == (0 if isinstance(lock, FileLock) else 1)


@pytest.mark.timeout(240)
@pytest.mark.covers("lock-takeover-race")
async def test_one_of_four_processes_takes_an_expired_lock_over(store_url: str, start: StartProcess) -> None:
    await race(store_url, start, rounds=ROUNDS)


@pytest.mark.timeout(240)
@pytest.mark.covers("lock-takeover-race")
async def test_one_of_four_processes_takes_an_expired_lock_file_over(
    tmp_path: Path, start: StartProcess
) -> None:
    await race(f"file://{tmp_path}", start, rounds=ROUNDS)


async def stand_still(url: str, start: StartProcess) -> None:
    holder = await start(url, ttl=1.5)
    holder.tell("hold")
    word, fence = await holder.hear()
    assert word == "held"
    os.kill(holder.process.pid, signal.SIGSTOP)
    successor = open_lock(url, "raced")
    assert await successor.acquire(timeout=PATIENCE)
    assert successor.fence > int(fence)
    os.kill(holder.process.pid, signal.SIGCONT)
    # The block was cancelled; it could neither renew nor release.
    assert await holder.hear() == ["lost", "False", "False"]
    owner = await successor.owner()
    assert owner is not None
    assert owner.fence == successor.fence
    assert await successor.release()


@pytest.mark.covers("lock-stopped-owner")
async def test_a_process_that_stood_still_has_lost_its_lock(store_url: str, start: StartProcess) -> None:
    await stand_still(store_url, start)


@pytest.mark.covers("lock-stopped-owner")
async def test_a_process_that_stood_still_has_lost_its_lock_file(tmp_path: Path, start: StartProcess) -> None:
    await stand_still(f"file://{tmp_path}", start)


async def test_the_lock_file_of_a_process_that_is_gone_is_free_at_once(
    tmp_path: Path, start: StartProcess
) -> None:
    url = f"file://{tmp_path}"
    holder = await start(url, ttl=3600)
    holder.tell("hold")
    _, fence = await holder.hear()
    lock: DistributedLock = open_lock(url, "raced")
    assert not await lock.acquire(timeout=0)
    file = tmp_path / "raced.lock"
    inode = inode_of(file)
    await holder.end()
    assert await lock.acquire(timeout=0)
    assert lock.fence > int(fence)
    assert await lock.release()
    assert await lock.cleanup() == 0
    assert inode_of(file) == inode
    assert isinstance(lock, FileLock)
