"""A store on SQLite needs no event loop for a thread that may wait."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from duetime.model.job import JobId, NewJob
from duetime.stores.open import open_store
from duetime.stores.sql.sqlite.driver import SqliteDriver
from duetime.stores.sql.store import SqlStore
from tests.unit.stores.sql.sqlite.kit import named


@pytest.mark.parametrize("count", [1, 3])
async def test_jobs_are_stored_in_the_thread_that_waits_for_them(path: Path, count: int) -> None:
    jobs = [NewJob(id=f"{n}", task="t", payload="{}") for n in range(count)]
    threads: set[str] = set()
    answers: list[Sequence[JobId] | None] = []
    store = cast("SqlStore", open_store(f"sqlite:///{path}"))
    await store.open()
    try:
        connection = cast("SqliteDriver", store._driver)._database.writer._connection
        assert connection is not None
        connection.set_trace_callback(lambda _: threads.add(threading.current_thread().name))
        await named("caller", lambda: answers.append(store.enqueue_blocking(jobs)))
    finally:
        await store.close()
    assert answers == [[job.id for job in jobs]]
    assert threads == {"caller"}
