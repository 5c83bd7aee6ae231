"""Jobs whose worker left no trace in the tables are rescued too; no verb can bring that about."""

from __future__ import annotations

import sqlite3

import asyncpg
import pytest

from duetime.model.states import State
from duetime.stores.base import Store
from duetime.testing.conformance import StoreSuite
from duetime.testing.conformance.kit import hire, put, read, rescue, take_one


async def execute(url: str, statement: str) -> None:
    if url.startswith("sqlite:"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as file:
            file.execute(statement)
        file.close()
    else:
        connection = await asyncpg.connect(url, statement_cache_size=0)
        await connection.execute(statement)
        await connection.close()


class TestLostRows(StoreSuite):
    @pytest.mark.parametrize(
        ("loss", "worker"),
        [
            ("DELETE FROM duetime_workers WHERE id = 'w1'", "w1"),
            ("UPDATE duetime_jobs SET worker = NULL", ""),
        ],
    )
    async def test_a_job_that_nobody_known_holds_is_taken_over(
        self, store: Store, store_url: str, loss: str, worker: str
    ) -> None:
        await hire(store, "w1", "w2")
        await put(store)
        claim = await take_one(store)
        await execute(store_url, loss)
        (orphan,) = await rescue(store, "w2")
        assert (orphan.worker, orphan.claim.fence) == (worker, 2)
        record = await read(store, claim.job_id)
        assert (record.state, record.worker) == (State.RUNNING, "w2")
