"""A SQLite file that is written to by many stays sound, with any version of SQLite."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from duetime import Scheduler, current_job
from duetime.stores.sql.sqlite.checkpoint import LOG_LIMIT, LONG_LOG
from tests.acceptance.kit import duetime

PROCESSES = 4
SECONDS = float(os.environ.get("DUETIME_SOUND_SECONDS", "8"))
"""How long they write; a minute shows more."""

pytestmark = pytest.mark.covers("damaged-file")


class Closely(sqlite3.Connection):
    """A connection that tells how it was set when it is closed."""

    settings: list[tuple[int, int]]
    made = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        Closely.made += 1

    def close(self) -> None:
        asked = [
            self.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("wal_autocheckpoint", "journal_size_limit")
        ]
        Closely.settings.append((asked[0], asked[1]))
        super().close()


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How all connections were set, when they are closed."""
    original: Callable[..., sqlite3.Connection] = sqlite3.connect
    Closely.settings, Closely.made = [], 0
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **named: original(*args, factory=Closely, **named))
    return Closely.settings


def test_every_connection_has_automatic_checkpoints_off(
    tmp_path: Path, settings: list[tuple[int, int]]
) -> None:
    url, there = f"sqlite:///{tmp_path / 'jobs.db'}", f"sqlite:///{tmp_path / 'there.db'}"
    scheduler = Scheduler(url)

    @scheduler.task(name="write")
    async def write(text: str) -> None:
        async with current_job().transaction() as tx:
            tx.connection.execute("CREATE TABLE IF NOT EXISTS effects (text)")
            tx.connection.execute("INSERT INTO effects VALUES (?)", (text,))

    async def work() -> None:
        async with scheduler.worker():
            job = await write.enqueue("lent")
            await job.result(timeout=10)
            # Enough for checkpoints, the last of them with connections of its own.
            for _ in range(LOG_LIMIT // 100_000 + 2):
                await scheduler.enqueue_many([write.options(delay="1h").call("x" * 100_000)])

    asyncio.run(work())
    assert len(settings) >= len(("writer", "reader", "lent", "checkpoint"))
    write.options(delay="1h").sync.enqueue("blocking")
    scheduler.sync.close()
    for command in (
        ["doctor", url],
        ["jobs", "list", "--url", url],
        ["migrate", "--url", url],
        ["copy", url, there],
    ):
        before = len(settings)
        assert duetime(*command).exit_code == 0
        assert len(settings) > before
    assert set(settings) == {(0, LOG_LIMIT)}
    assert len(settings) == Closely.made


@pytest.mark.timeout(60 + 2 * SECONDS)
async def test_four_processes_that_write_all_the_time_leave_the_file_sound(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    log = tmp_path / "jobs.db-wal"
    writers = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.integration.hammer", f"sqlite:///{path}", f"{SECONDS}"),
            stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(PROCESSES)
    ]
    talking = asyncio.gather(*(writer.communicate() for writer in writers))
    generations: set[bytes] = set()
    largest = 0
    while not talking.done():
        await asyncio.sleep(0.01)
        if os.path.exists(log):  # noqa: ASYNC240, PTH110 -- looks
            with open(log, "rb") as file:  # noqa: ASYNC230, PTH123
                generations.add(file.read(24)[16:])
                largest = max(largest, os.fstat(file.fileno()).st_size)
    accepted = [int(out) for out, _ in await talking]
    assert [writer.returncode for writer in writers] == [0] * PROCESSES
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*) FROM duetime_jobs").fetchone() == (sum(accepted),)
    assert all(accepted)
    # It was restarted again and again, and never became long.
    assert len(generations) > SECONDS
    assert largest < 2 * LONG_LOG
