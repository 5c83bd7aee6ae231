"""A limit costs a probe for each gate that is looked at, however many jobs wait at it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from duetime.stores.open import open_store
from duetime.stores.sql.driver import Statement
from tests.plans import postgres, test_sqlite as sqlite
from tests.plans.kit import AT_GATES, DUE, IN_QUEUES, LATER, NEXT_DUE, ROWS, RUNNING, SURVEY
from tests.plans.postgres import PLANS, Connection, Copies, buffers, explain, nodes, scans, undone

GATES = 20
EXPECTED = [
    (sqlite.SQL.waiting_gates, SURVEY),
    (sqlite.SQL.limited_queues, SURVEY),
    (sqlite.SQL.at_gates, AT_GATES),
    (sqlite.SQL.in_queues, IN_QUEUES),
    (sqlite.SQL.running_under, RUNNING),
    (sqlite.SQL.next_due, NEXT_DUE),
]

INSERT = """
INSERT INTO duetime_jobs (id, task, payload, queue, priority, state, due_at, created_at, on_crash, gate)
SELECT {id}, 'greet', '{{}}', 'default', 5, 'pending', {due}, 1, 'retry', {gate} FROM {numbers}
"""


@pytest.fixture(params=[False, True], ids=["no-statistics", "statistics"])
async def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "plans.db"
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.close()
    with closing(sqlite3.connect(path)) as opened:
        opened.execute(
            "INSERT INTO duetime_workers (id, state, host, pid, version, queues, slots, started_at, beat_at, lease_until) "
            "VALUES ('w', 'alive', 'h', 1, '1', '[]', 1, 1, 1, 1)"
        )
        opened.execute("INSERT INTO duetime_queues (name, most) VALUES ('default', 3)")
        wait(opened, "1", 1, count=1_000)
        if request.param:
            opened.execute("ANALYZE")
        opened.commit()
    return path


@pytest.fixture
def database(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, isolation_level=None)) as opened:
        opened.execute("BEGIN")
        yield opened


def wait(opened: sqlite3.Connection, key: str, first: int, *, count: int, due_at: int = DUE - 1) -> None:
    """Let jobs wait at the gate of a key, or, without one, in the queue."""
    numbers = f"(WITH RECURSIVE n (i) AS (VALUES ({first}) UNION ALL SELECT i + 1 FROM n WHERE i < {first + count - 1}) SELECT i FROM n)"
    gate = f"'greet[key={key}]'" if key else "NULL"
    opened.execute(INSERT.format(id="printf('%032d', i)", due=due_at, gate=gate, numbers=numbers))


@pytest.mark.covers("limit-starves")
@pytest.mark.parametrize(("statement", "values"), EXPECTED, ids=lambda value: getattr(value, "name", ""))
def test_sqlite_takes_no_more_steps_when_very_many_more_jobs_wait(
    database: sqlite3.Connection, statement: Statement, values: Mapping[str, object]
) -> None:
    for number in range(2, GATES + 1):
        wait(database, str(number), 1_000 * number, count=2)
    wait(database, "", 50_000, count=1_000)
    wait(database, "2", 400_000, count=100, due_at=LATER)
    before = sqlite.steps(database, statement, values)
    wait(database, "1", 100_000, count=ROWS)
    wait(database, "", 300_000, count=ROWS)
    wait(database, "2", 500_000, count=1_000, due_at=LATER)
    assert sqlite.steps(database, statement, values) <= before * 1.2 + 1
    shown = sqlite.plan(database, statement)
    assert "TEMP B-TREE" not in shown
    assert "SCAN j\n" not in f"{shown}\n"
    assert "SCAN n\n" not in f"{shown}\n"


async def wait_at_gates(connection: Connection) -> None:
    """Let very many jobs wait at one gate and in one queue, and a few at others."""
    await connection.execute("INSERT INTO duetime_queues (name, most) VALUES ('default', 3)")
    full, others = f"generate_series(1, {ROWS}) AS i", f"generate_series({ROWS + 1}, {ROWS + 40}) AS i"
    plain = f"generate_series({2 * ROWS}, {3 * ROWS}) AS i"
    for numbers, gate in (
        (full, "'greet[key=1]'"),
        (others, f"'greet[key=' || i % {GATES} || ']'"),
        (plain, "NULL"),
    ):
        await connection.execute(
            INSERT.format(id="lpad(i::text, 32, '0')", due=DUE - 1, gate=gate, numbers=numbers)
        )
    await connection.execute("VACUUM ANALYZE duetime_jobs")


@pytest.mark.covers("limit-starves")
@PLANS
@pytest.mark.parametrize(
    "name", ["waiting_gates", "limited_queues", "at_gates", "in_queues", "running_under", "next_due"]
)
async def test_postgres_reads_no_more_when_very_many_jobs_wait(copies: Copies, mode: str, name: str) -> None:
    values = next(values for statement, values in EXPECTED if statement.name == name)
    connection = await copies.connect("waiting at gates", wait_at_gates)
    async with undone(connection, mode):
        plan = await explain(connection, getattr(postgres.SQL, name), values)
    assert "Seq Scan" not in {kind for kind, _ in scans(plan)}
    assert buffers(plan) < 1_000


async def come_to_gates(connection: Connection, *, task: str) -> None:
    """Let each of very many jobs come to a gate of its own."""
    insert = INSERT.replace("'greet'", f"'{task}'", 1)
    numbers = f"generate_series(1, {ROWS}) AS i"
    await connection.execute(
        insert.format(
            id="lpad(i::text, 32, '0')", due=f"{LATER} + i", gate="'g[key=' || i || ']'", numbers=numbers
        )
    )
    await connection.execute("VACUUM ANALYZE duetime_jobs")


@pytest.mark.covers("limit-starves")
@PLANS
@pytest.mark.parametrize("task", ["greet", "stranger"])
async def test_postgres_tells_the_next_due_time_among_very_many_jobs_that_will_come_to_gates(
    copies: Copies, mode: str, task: str
) -> None:
    connection = await copies.connect(f"{task} comes to gates", partial(come_to_gates, task=task))
    async with undone(connection, mode):
        plan = await explain(connection, postgres.SQL.next_due, NEXT_DUE)
    assert {index for _, index in scans(plan)} <= {"duetime_jobs_claim", "duetime_jobs_gated_due"}
    assert not {"Sort", "Incremental Sort"} & {node["Node Type"] for node in nodes(plan)}
    assert buffers(plan) < 120


@pytest.mark.covers("limit-starves")
@PLANS
@pytest.mark.parametrize("name", ["waiting_gates", "at_gates", "next_due"])
async def test_postgres_goes_from_gate_to_gate_even_if_it_learnt_that_no_job_waits(
    connection: Connection, mode: str, name: str
) -> None:
    values = next(values for statement, values in EXPECTED if statement.name == name)
    await connection.execute("ALTER TABLE duetime_jobs SET (autovacuum_enabled = false)")
    await postgres.fill(connection, due=0, later=1_000)
    await connection.execute("UPDATE duetime_jobs SET state = 'succeeded'")
    await connection.execute("VACUUM ANALYZE duetime_jobs")
    numbers, gate = f"generate_series({ROWS}, {ROWS + 10_000}) AS i", "'greet[key=' || i || ']'"
    await connection.execute(
        INSERT.format(id="lpad(i::text, 32, '0')", due=DUE - 1, gate=gate, numbers=numbers)
    )
    async with undone(connection, mode):
        plan = await explain(connection, getattr(postgres.SQL, name), values)
    assert not {"Sort", "Incremental Sort"} & {node["Node Type"] for node in nodes(plan)}
    # A step of the walk is a probe of its index and one of the primary key.
    assert buffers(plan) < 500 * 15


@pytest.mark.covers("limit-starves")
def test_sqlite_takes_no_more_steps_for_gates_of_the_future(database: sqlite3.Connection) -> None:
    database.execute("UPDATE duetime_jobs SET due_at = ? WHERE id > printf('%032d', 20)", (LATER,))
    before = sqlite.steps(database, sqlite.SQL.waiting_gates, SURVEY)
    for number in range(1_000):
        wait(database, f"later{number}", 10_000 + number, count=1, due_at=LATER)
    assert sqlite.steps(database, sqlite.SQL.waiting_gates, SURVEY) <= before * 1.2 + 1


@pytest.mark.covers("limit-starves")
@PLANS
async def test_postgres_reads_no_more_for_gates_of_the_future(connection: Connection, mode: str) -> None:
    due = f"CASE WHEN i <= 20 THEN {DUE - 1} ELSE {LATER} END"
    numbers, gate = "generate_series(1, 10000) AS i", "'greet[key=' || i || ']'"
    await connection.execute(INSERT.format(id="lpad(i::text, 32, '0')", due=due, gate=gate, numbers=numbers))
    await connection.execute("VACUUM ANALYZE duetime_jobs")
    async with undone(connection, mode):
        plan = await explain(connection, postgres.SQL.waiting_gates, SURVEY)
    assert plan["Actual Rows"] == 20
    assert buffers(plan) < 200
