"""A SQLite file that is deleted or replaced under a running process: nothing is accepted that would be lost."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duetime import Scheduler, Task, current_job
from duetime.errors import StoreError, StoreLost
from duetime.stores.sql.sqlite import database as database_module
from duetime.stores.sql.sqlite.database import Database
from tests.integration.callers import Calling, by_async_session, by_session, by_sqlite3
from tests.integration.kit import until

pytestmark = pytest.mark.covers("lost-file")

LOST = "was deleted or replaced while it was open.* restart every process"


def delete(path: Path) -> None:
    path.unlink()


def delete_all(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def delete_log(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def replace(path: Path) -> None:
    shutil.copy(path, backup := path.with_suffix(".backup"))
    backup.rename(path)


def move_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def link_to(path: Path, link: Path) -> None:
    path.touch()
    link.unlink(missing_ok=True)
    link.symlink_to(path.name)


def in_another_process(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=False)


Loss = Callable[[Path], None]
LOSSES = (delete, delete_all, delete_log, replace, move_folder)


@pytest.fixture(autouse=True)
def each_commit_looks_at_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at the log are a few milliseconds apart, and these tests are quicker than that."""
    monkeypatch.setattr(database_module, "LOG_LOOKS", 0.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "jobs.db"


@pytest.fixture
def scheduler(path: Path) -> Scheduler:
    return Scheduler(f"sqlite:///{path}")


@pytest.fixture
def task(scheduler: Scheduler) -> Task[[int], int]:
    @scheduler.task(name="double")
    async def double(number: int) -> int:
        return number * 2

    return double


@pytest.mark.parametrize("lose", LOSSES)
async def test_nothing_is_accepted_or_read_once_the_file_is_lost(
    scheduler: Scheduler, task: Task[[int], int], path: Path, lose: Loss
) -> None:
    async with scheduler:
        await task.enqueue(1)
        lose(path)
        for _ in range(2):
            with pytest.raises(StoreLost, match=LOST):
                await task.enqueue(2)
        with pytest.raises(StoreLost, match=LOST):
            await scheduler.enqueue_many([task.call(3), task.options(key="k").call(4)])
        with pytest.raises(StoreLost, match=LOST):
            await scheduler.jobs.list()


@pytest.mark.parametrize("lose", LOSSES)
def test_nothing_is_accepted_from_a_blocking_caller(
    scheduler: Scheduler, task: Task[[int], int], path: Path, lose: Loss
) -> None:
    task.sync.enqueue(1)
    lose(path)
    with pytest.raises(StoreLost, match=LOST):
        task.sync.enqueue(2)
    with pytest.raises(StoreLost, match=LOST):
        scheduler.sync.enqueue_many([task.call(3), task.call(4)])
    scheduler.sync.close()


@pytest.mark.parametrize("calling", [by_sqlite3, by_session, by_async_session])
async def test_nothing_is_accepted_in_a_transaction_of_the_caller(
    scheduler: Scheduler, task: Task[[int], int], path: Path, calling: Calling
) -> None:
    async with scheduler, calling(scheduler.url) as caller:
        await task.options(tx=caller.tx).enqueue(1)
        delete(path)
        with pytest.raises(StoreLost, match=LOST):
            await task.options(tx=caller.tx).enqueue(2)


async def test_a_file_that_is_put_back_takes_jobs_again(
    scheduler: Scheduler, task: Task[[int], int], path: Path
) -> None:
    async with scheduler:
        path.rename(aside := path.with_suffix(".aside"))  # noqa: ASYNC240 -- takes no time
        with pytest.raises(StoreLost):
            await task.enqueue(1)
        aside.rename(path)
        job = await task.enqueue(2)
        assert job.id in [record.id for record in await scheduler.jobs.list()]


async def test_a_scheduler_that_is_opened_again_uses_the_file_that_is_there(
    scheduler: Scheduler, task: Task[[int], int], path: Path
) -> None:
    async with scheduler:
        await task.enqueue(1)
        delete_all(path)
        with pytest.raises(StoreLost):
            await task.enqueue(2)
    async with scheduler:
        job = await task.enqueue(3)
        assert [record.id for record in await scheduler.jobs.list()] == [job.id]


async def test_a_process_that_changes_its_folder_keeps_its_file(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    scheduler = Scheduler("sqlite:///jobs.db")

    @scheduler.task(name="write")
    async def write() -> None:
        async with current_job().transaction() as tx:
            tx.connection.execute("CREATE TABLE effects (n integer)")

    async with scheduler, scheduler.worker(concurrency=1):
        monkeypatch.chdir(tmp_path)
        await (await write.enqueue()).result(timeout=10)
    assert not (tmp_path / "jobs.db").exists()


async def test_a_link_is_followed_and_one_that_leads_elsewhere_is_a_loss(path: Path) -> None:
    link = path.with_name("link.db")
    link_to(path, link)
    scheduler = Scheduler(f"sqlite:///{link}")

    @scheduler.task(name="note")
    async def note() -> None: ...

    async with scheduler:
        await note.enqueue()
        link_to(path.with_name("other.db"), link)
        with pytest.raises(StoreLost):
            await note.enqueue()


@pytest.mark.parametrize("lose", LOSSES)
async def test_a_worker_says_once_that_its_file_is_lost_and_stops(
    scheduler: Scheduler, task: Task[[int], int], path: Path, lose: Loss, caplog: pytest.LogCaptureFixture
) -> None:
    async with scheduler.worker(lease="3s", grace=1) as worker:
        await (await task.enqueue(1)).result(timeout=10)
        lose(path)
        async with asyncio.timeout(10):
            await worker.asked_to_stop()
            await worker.stop()
        assert not worker.health.healthy
        assert isinstance(worker.lost, StoreLost)
    said = [record.message for record in caplog.records if "was deleted or replaced" in record.message]
    loud = [record.message for record in caplog.records if record.levelno >= logging.ERROR]
    assert loud == [f"worker {worker.id} stops: {worker.lost}"]
    # The other is that it could not sign off.
    assert len(said) <= 2


async def test_an_idle_worker_stops_as_soon_as_its_file_and_log_are_deleted(
    scheduler: Scheduler, path: Path
) -> None:
    async with scheduler.worker(lease="5m") as worker:
        await until(lambda: scheduler.store.hears_others, what="a worker that hears of commits")
        delete_all(path)
        async with asyncio.timeout(5):
            await worker.asked_to_stop()


async def test_a_file_that_is_replaced_while_a_connection_is_made_is_not_used(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def replace_and_connect(*args: Any, **named: Any) -> sqlite3.Connection:
        replace(path)
        return connect(*args, **named)

    database = Database(path)
    await database.open()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(sqlite3, "connect", replace_and_connect)
            with pytest.raises(StoreLost):
                database.connect_writer()
    finally:
        await database.close()


async def test_a_handler_whose_file_is_lost_commits_nothing_and_makes_no_file(
    scheduler: Scheduler, path: Path
) -> None:
    entered, go_on, refused = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @scheduler.task(name="write")
    async def write(*, early: bool) -> None:
        if early:
            entered.set()
            await go_on.wait()
        try:
            async with current_job().transaction() as tx:
                tx.connection.execute("CREATE TABLE IF NOT EXISTS effects (n integer)")
                entered.set()
                await go_on.wait()
        except StoreError:
            refused.set()
            raise

    for early in (True, False):
        for event in (entered, go_on, refused):
            event.clear()
        async with asyncio.timeout(20):
            async with scheduler.worker(lease="3s", grace=1):
                await write.enqueue(early=early)
                await entered.wait()
                delete_all(path)
                go_on.set()
                await refused.wait()
        assert list(path.parent.iterdir()) == []


def test_to_look_at_the_file_drops_no_lock(path: Path) -> None:
    """Another process is still kept out; to open and close the file would let it in."""
    begin = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute('BEGIN IMMEDIATE')"

    async def hold() -> subprocess.CompletedProcess[str]:
        database = Database(path)
        await database.open()
        try:
            await database.writer.do(lambda connection: connection.execute("BEGIN IMMEDIATE"))
            database.look()
            return await asyncio.to_thread(in_another_process, begin, path)
        finally:
            await database.close()

    assert "database is locked" in asyncio.run(hold()).stderr
