"""MariaDB reads what it needs and no more, however many jobs wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, cast
from uuid import uuid4

import pytest
import pytest_asyncio

from duetime.stores.open import open_store
from duetime.stores.sql.driver import Query, Script, Statement
from duetime.stores.sql.mariadb.connection import MariaDbConnection, MariaDbConnector
from duetime.stores.sql.mariadb.dialect import MARIADB
from duetime.stores.sql.statements.loader import load, load_hints
from tests.plans.kit import (
    BATCH,
    DUE,
    LATER,
    NEXT_DUE,
    ROWS,
    claim_values,
    job_id,
    pulse_values,
    settle_values,
    succeed_values,
)
from tests.support.mariadb import connected, fetch
from tools.servers import MariaDb

SQL = load(MARIADB, "duetime")
HINTS = load_hints(MARIADB, "duetime")
ENDED = ROWS // 10
"""How many jobs have ended; the first of them, as ids rise with time."""
AWHILE = ENDED + BATCH
"""Up to here they are due."""
FILL = f"""
INSERT INTO duetime_jobs (id, task, payload, queue, priority, state, due_at, created_at, on_crash, finished_at, unique_key)
SELECT lpad(seq, 32, '0'), 'greet', '{{}}', 'default', 5, CASE WHEN seq <= {ENDED} THEN 'succeeded' ELSE 'pending' END,
       CASE WHEN seq <= {AWHILE} THEN {DUE - 1} ELSE {LATER} END, 1, 'retry', CASE WHEN seq <= {ENDED} THEN 2 END,
       CASE WHEN seq BETWEEN {ENDED + 1} AND {AWHILE} THEN seq END
FROM seq_1_to_{ROWS}
"""
HIRE = """
INSERT INTO duetime_workers (id, state, host, pid, version, queues, tasks, slots, started_at, beat_at, lease_until)
VALUES ('w', 'alive', 'h', 1, '1', '[]', '[]', 1, 1, 1, 1)
"""


@pytest.fixture(scope="module")
def filled(mariadb: MariaDb) -> Iterator[str]:
    """The address of a store with many jobs; tests undo what they do to it."""
    name = f"plans_{uuid4().hex}"
    url = mariadb.create_database(name)
    asyncio.run(fill(url))
    yield url
    mariadb.drop_database(name)


async def fill(url: str) -> None:
    store = open_store(url)
    await store.open()
    await store.close()
    async with connected(url) as connection:
        for statement in (FILL, HIRE, "ANALYZE TABLE duetime_jobs"):
            await fetch(connection, statement)


class Reader:
    """Runs statements in a transaction that comes to nothing, and counts the rows that they make the server read."""

    def __init__(self, connector: MariaDbConnector, session: MariaDbConnection) -> None:
        self._connector = connector
        self._session = session

    async def reads(self, statement: Statement, values: Mapping[str, object]) -> int:
        before = await self._handled()
        await self.run(statement, values)
        return await self._handled() - before

    async def run(self, statement: Statement, values: Mapping[str, object]) -> list[Any]:
        def script() -> Script[list[Any]]:
            return (yield Query(statement, values))

        return await self._connector.play(self._session, script(), None)

    async def let_run(self, count: int) -> None:
        """Let jobs run, under the claim that the values of settlements name."""
        await self._session.execute(
            "UPDATE duetime_jobs SET state = 'running', fence = 1, claim_id = 'c', worker = 'w', finished_at = NULL "
            f"WHERE id <= '{job_id(count)}'"
        )

    async def make_history(self, count: int) -> None:
        """Have a schedule with as many jobs that have ended, in pairs of each kind, half of them triggered by hand."""
        await self._session.execute(
            "INSERT INTO duetime_jobs (id, task, payload, queue, priority, state, due_at, created_at, on_crash, finished_at,"
            " schedule, occurrence) SELECT concat('nightly ', lpad(seq, 5, '0')), 'greet', '{}', 'default', 5,"
            " CASE WHEN seq % 2 = 0 THEN 'succeeded' ELSE 'failed' END, 1, 1, 'retry', 2, 'nightly',"
            f" CASE WHEN seq % 4 IN (1, 2) THEN seq END FROM seq_1_to_{count}"
        )

    async def _handled(self) -> int:
        found = await self._session.fetch("SHOW SESSION STATUS LIKE 'Handler_read_%%'", {})
        return sum(int(count) for name, count in found if not name.endswith(("_deleted", "_retry")))


@pytest_asyncio.fixture
async def reader(filled: str) -> AsyncIterator[Reader]:
    store = open_store(filled)
    connector: MariaDbConnector = cast("Any", store)._driver._connector
    session = await connector.connect()
    await session.execute("BEGIN")
    yield Reader(connector, session)
    await session.execute("ROLLBACK")
    await session.close()


@pytest.mark.covers("claim-reads-index")
async def test_a_claim_reads_the_jobs_that_it_takes(reader: Reader) -> None:
    [(packed, chosen)] = await reader.run(SQL.claim, claim_values(limit=20))
    assert len(json.loads(packed)) == len(json.loads(chosen)) == 20
    assert await reader.reads(SQL.claim, claim_values(limit=20)) < 20 * 10


async def test_a_claim_ahead_reads_past_nothing(reader: Reader) -> None:
    values = {**claim_values(ahead=LATER, limit=20)}
    assert await reader.reads(SQL.claim, values) < 20 * 10


async def test_to_mark_jobs_as_claimed_looks_each_of_them_up(reader: Reader) -> None:
    chosen = json.dumps([[job_id(ENDED + n)] for n in range(BATCH)])
    assert await reader.reads(SQL.take, {**claim_values(), "chosen": chosen}) < BATCH * 10


async def test_the_next_due_time_is_a_probe_for_each_queue_and_priority(reader: Reader) -> None:
    assert await reader.reads(SQL.next_due, NEXT_DUE) < 500


async def test_a_look_for_due_jobs_reads_no_more_than_it_counts(reader: Reader) -> None:
    for queue in ("", "default"):
        assert await reader.reads(SQL.next_queue, {"queue": queue}) < 10
    values = {"queue": "default", "most": 20, "now": DUE}
    assert await reader.reads(SQL.due_in_queue, values) < 20 * 5


@pytest.mark.parametrize(
    ("statement", "values"), [(SQL.settle, settle_values()), (SQL.succeed, succeed_values())]
)
async def test_a_settlement_looks_up_its_jobs(
    reader: Reader, statement: Statement, values: Mapping[str, object]
) -> None:
    await reader.let_run(BATCH)
    assert await reader.reads(statement, values) < BATCH * 20


async def test_a_heartbeat_reads_little_whatever_waits(reader: Reader) -> None:
    assert await reader.reads(SQL.pulse, pulse_values()) < 2_000


async def test_a_heartbeat_reads_a_hundred_jobs_of_others_also_where_all_fall_due_together(
    reader: Reader,
) -> None:
    # The hundredth is found anew for each of them.
    assert await reader.reads(SQL.pulse, pulse_values("unknown")) < 100 * 100 * 2


async def test_a_look_for_hints_probes_each_queue_and_priority(reader: Reader) -> None:
    assert await reader.reads(HINTS["watch"], {"heard": -1, "due": 0, "pace": 1, "now": DUE}) < 100


async def test_what_comes_next_is_found_by_the_index_alone(reader: Reader) -> None:
    explain = SQL.upcoming._replace(sql=f"EXPLAIN {SQL.upcoming.sql}")
    found = await reader.run(explain, {"limit": 20, "now": DUE})
    [(key, extra)] = [(key, extra) for *_, kind, _, key, _, _, _, extra in found if kind == "ref"]
    assert key == "duetime_jobs_claim"
    assert "Using index" in extra


async def test_a_key_is_looked_up_by_its_index(reader: Reader) -> None:
    values = {
        "rows": json.dumps([[f"new{n}", "greet", str(ENDED + 1 + n)] for n in range(BATCH)]),
        "now": DUE,
    }
    assert len(await reader.run(SQL.key_holders, values)) == BATCH
    assert await reader.reads(SQL.key_holders, values) < BATCH * 20


async def test_how_a_schedule_fares_is_told_without_reading_its_history(reader: Reader) -> None:
    """However long it is, and however many jobs were triggered by hand."""
    await reader.make_history(10_000)
    values = {"rows": json.dumps([["nightly", "succeeded"], ["nightly", "failed"]]), "most": 100}
    found = await reader.run(SQL.count_runs, values)
    assert [tuple(row) for row in found] == [
        ("nightly", "succeeded", 100, "nightly 09998", "nightly 10000"),
        ("nightly", "failed", 100, "nightly 09997", "nightly 09999"),
    ]
    assert await reader.reads(SQL.count_runs, values) < 1_000
