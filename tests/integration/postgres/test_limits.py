from __future__ import annotations

import asyncio
from dataclasses import replace

from duetime.model.ids import new_token
from duetime.model.limits import Gate
from duetime.stores.base import ClaimRequest
from duetime.stores.open import open_store
from duetime.stores.sql.postgres.dialect import POSTGRES
from duetime.stores.sql.statements.loader import Statements, load
from duetime.stores.sql.store import SqlStore
from duetime.testing.conformance.kit import TASK, hire
from duetime.testing.conformance.limits import gated
from tests.integration.postgres.kit import ask, opened

SQL = load(POSTGRES, "duetime")
STUCK = SQL.running_under._replace(
    sql=SQL.running_under.sql.replace("SELECT 'gate'", "SELECT 'gate' || pg_sleep(60)", 1)
)
SLEEPERS = ask("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()")
ANY = ClaimRequest(
    worker="w1",
    claim_id="",
    queues=(("default", 1),),
    limit=1,
    tasks=(TASK,),
    limits={TASK: Gate(most=1)},
)


async def test_a_claimer_that_is_stopped_half_way_holds_up_nobody_at_other_gates(postgres_url: str) -> None:
    store = open_store(postgres_url)
    await store.open()
    async with opened(postgres_url) as driver:
        await hire(store, "w1", "w2")
        _, second = await store.enqueue([gated("a", priority=0), gated("b")])
        stopped = open_store(postgres_url)
        assert isinstance(stopped, SqlStore)
        stopped._sql = Statements(
            [one.name for one in SQL],
            lambda name: STUCK if name == "running_under" else getattr(SQL, name),
        )
        await stopped.open()
        claim = asyncio.ensure_future(stopped.claim_limited(replace(ANY, claim_id=new_token())))
        # Less than the server lets the other one sleep.
        async with asyncio.timeout(20):
            while not await driver.read(SLEEPERS):  # noqa: ASYNC110 - the server does not tell
                await asyncio.sleep(0.01)
            other = await store.claim_limited(replace(ANY, worker="w2", claim_id=new_token()))
        assert [claim.job_id for claim in other.claims] == [second]
        claim.cancel()
        await asyncio.wait({claim})
        await stopped.close()
    await store.close()
