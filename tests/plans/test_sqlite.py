"""SQLite reads what it needs and no more, however many jobs wait."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from duetime.stores.open import open_store
from duetime.stores.sql.driver import Statement
from duetime.stores.sql.sqlite.connection import by_row
from duetime.stores.sql.sqlite.dialect import SQLITE
from duetime.stores.sql.statements.loader import load
from tests.plans.kit import BATCH, DUE, LATER, NEXT_DUE, ROWS, claim_values, find_values, pulse_values

SQL = load(SQLITE, "duetime")


@pytest.fixture(params=[False, True], ids=["no-statistics", "statistics"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "plans.db"
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO duetime_workers (id, state, host, pid, version, queues, slots, started_at, beat_at, lease_until) "
            "VALUES ('w', 'alive', 'h', 1, '1', '[]', 1, 1, 1, 1)"
        )
        fill(connection, 1, 5_000, due_at=LATER)
        if request.param:
            # Taken while nothing runs, which is when planners learn the wrong thing.
            connection.execute("ANALYZE")
        connection.commit()
    return path


@pytest.fixture
def connection(database: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        yield connection


def fill(connection: sqlite3.Connection, first: int, last: int, *, due_at: int) -> None:
    connection.execute(
        "WITH RECURSIVE n (i) AS (VALUES (:first) UNION ALL SELECT i + 1 FROM n WHERE i < :last) "
        "INSERT INTO duetime_jobs (id, task, payload, queue, priority, state, due_at, created_at, on_crash) "
        "SELECT printf('%032d', i), 'greet', '{}', 'default', 5, 'pending', :due_at, 1, 'retry' FROM n",
        {"first": first, "last": last, "due_at": due_at},
    )


def plan(connection: sqlite3.Connection, statement: Statement) -> str:
    values = [1] * len(statement.params)
    return "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", values))


def steps(connection: sqlite3.Connection, statement: Statement, values: Mapping[str, object]) -> int:
    """How many hundreds of instructions of SQLite's machine a statement takes."""
    taken = 0

    def count() -> None:
        nonlocal taken
        taken += 1

    connection.set_progress_handler(count, 100)
    if statement.columns:
        values_with = by_row(statement, values)
        for row in json.loads(str(values["rows"])):
            connection.execute(statement.sql, values_with(row))
    else:
        connection.execute(statement.sql, [values[name] for name in statement.params]).fetchall()
    connection.set_progress_handler(None, 0)
    return taken


@pytest.mark.covers("claim-reads-index")
def test_a_claim_walks_the_claim_index_in_order(connection: sqlite3.Connection) -> None:
    shown = plan(connection, SQL.claim)
    assert "USING INDEX duetime_jobs_claim (queue=? AND priority=? AND due_at>? AND due_at<?)" in shown
    assert "TEMP B-TREE" not in shown
    assert "SCAN duetime_jobs" not in shown
    assert "SCAN j" not in shown.replace("SCAN json_each", "")


def test_the_next_due_time_is_one_probe_per_range(connection: sqlite3.Connection) -> None:
    shown = plan(connection, SQL.next_due)
    assert "USING INDEX duetime_jobs_claim (queue=? AND priority=? AND due_at>?)" in shown
    assert "TEMP B-TREE" not in shown


@pytest.mark.covers("lease-behind-backlog")
@pytest.mark.parametrize("task", ["greet", "stranger"])
def test_a_heartbeat_costs_the_same_with_many_more_jobs_due_of_whatever_task(
    connection: sqlite3.Connection, task: str
) -> None:
    fill(connection, 5_001, 6_000, due_at=DUE - 1)
    before = steps(connection, SQL.pulse, pulse_values(task))
    fill(connection, 6_001, ROWS, due_at=DUE - 1)
    assert steps(connection, SQL.pulse, pulse_values(task)) <= before * 1.2 + 1
    assert "TEMP B-TREE" not in plan(connection, SQL.pulse)


@pytest.mark.covers("claim-reads-index", "cancel-searches")
@pytest.mark.parametrize(
    "statement",
    [
        SQL.settle,
        SQL.succeed,
        SQL.mark_started,
        SQL.holders,
        SQL.settled_before,
        SQL.adopt,
        SQL.cancel,
        SQL.edit,
        SQL.standing,
        SQL.get,
        SQL.key_holders,
        SQL.replace_keyed,
        SQL.free_keys,
        SQL.forget,
        SQL.delete_jobs,
    ],
    ids=lambda statement: statement.name,
)
def test_a_batch_finds_its_jobs_by_primary_key(connection: sqlite3.Connection, statement: Statement) -> None:
    shown = plan(connection, statement)
    assert "sqlite_autoindex_duetime_jobs_1 (id=?)" in shown
    assert "SCAN duetime_jobs" not in shown


def test_what_was_chosen_is_taken_where_it_was_found(connection: sqlite3.Connection) -> None:
    shown = plan(connection, SQL.take)
    assert "SEARCH duetime_jobs USING INTEGER PRIMARY KEY (rowid=?)" in shown
    assert "SCAN duetime_jobs" not in shown


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (SQL.held_by, "duetime_jobs_running (worker=?)"),
        (SQL.claims_under, "duetime_jobs_running (worker=?)"),
        (SQL.orphans, "duetime_jobs_running"),
        (SQL.forsaken, "duetime_jobs_running"),
        (SQL.prune_workers, "duetime_jobs_running (worker=?)"),
        (SQL.due_schedules, "duetime_schedules_next (next_at>? AND next_at<?)"),
        (SQL.due_schedules, "duetime_jobs_history (schedule=? AND state=?)"),
        (SQL.next_schedule, "duetime_schedules_next (next_at>?)"),
        (SQL.withdraw, "duetime_jobs_history (schedule=? AND state=?)"),
        (SQL.withdraw_claimed, "duetime_jobs_history (schedule=? AND state=?)"),
        (SQL.occurrence_ids, "duetime_jobs_occurrence (schedule=? AND occurrence=?)"),
        (SQL.key_holders, "duetime_jobs_key (task=? AND unique_key=?)"),
        (SQL.find, "sqlite_autoindex_duetime_jobs_1"),
        (SQL.find_newest, "sqlite_autoindex_duetime_jobs_1"),
        (SQL.find_unsuccessful, "duetime_jobs_unsuccessful"),
        (SQL.find_live, "duetime_jobs_running"),
        (SQL.find_live, "duetime_jobs_claim"),
        (SQL.find_live, "duetime_jobs_gated"),
        (SQL.find_of_schedule, "duetime_jobs_history (schedule=?)"),
        (SQL.find_running, "duetime_jobs_running"),
        (SQL.reach, "sqlite_autoindex_duetime_jobs_1"),
        (SQL.reach_unsuccessful, "duetime_jobs_unsuccessful"),
        (SQL.count_live, "duetime_jobs_running"),
        (SQL.count_live, "duetime_jobs_claim"),
        (SQL.count_live, "duetime_jobs_gated"),
        (SQL.count_of_schedule, "duetime_jobs_history (schedule=?)"),
        (SQL.schedules_page, "sqlite_autoindex_duetime_schedules_1 (name>?)"),
        (SQL.prunable, "sqlite_autoindex_duetime_jobs_1 (id>?)"),
        (SQL.latest_occurrences, "duetime_jobs_occurrence (schedule=?"),
        (SQL.past_occurrences, "duetime_jobs_occurrence (schedule=? AND occurrence<?)"),
        (SQL.delete_attempts, "PRIMARY KEY (job_id=?)"),
        (SQL.forget_attempts, "PRIMARY KEY (job_id=?)"),
        (SQL.attempts, "PRIMARY KEY (job_id=?)"),
        (SQL.tally_waiting, "duetime_jobs_claim (queue=? AND priority=? AND due_at<?)"),
        (SQL.tally_waiting, "duetime_jobs_claim (queue=? AND priority=? AND due_at>?)"),
        (SQL.next_queue, "duetime_jobs_claim (queue>?)"),
        (SQL.due_in_queue, "duetime_jobs_claim (queue=? AND priority=? AND due_at<?)"),
        (SQL.due_at_gates, "duetime_jobs_gated_due"),
        (SQL.tally_gated, "duetime_jobs_gated_due"),
        (SQL.tally_running, "duetime_jobs_running"),
        (SQL.tally_latest, "sqlite_autoindex_duetime_jobs_1"),
        (SQL.purgeable, "duetime_jobs_claim (queue=?)"),
    ],
    ids=lambda value: value.name if isinstance(value, Statement) else "",
)
def test_a_statement_uses_the_index_made_for_it(
    connection: sqlite3.Connection, statement: Statement, index: str
) -> None:
    assert index in plan(connection, statement)


def test_a_claim_costs_the_same_with_many_more_jobs_in_the_future(connection: sqlite3.Connection) -> None:
    before = steps(connection, SQL.claim, claim_values())
    fill(connection, 5_001, ROWS, due_at=LATER)
    assert steps(connection, SQL.claim, claim_values()) <= before * 1.2 + 1
    assert steps(connection, SQL.next_due, NEXT_DUE) <= 50


def test_a_claim_costs_what_it_takes_with_many_more_jobs_due(connection: sqlite3.Connection) -> None:
    fill(connection, 10_001, 10_000 + BATCH, due_at=DUE - 1)
    connection.execute("SAVEPOINT claim")
    before = steps(connection, SQL.claim, claim_values())
    connection.execute("ROLLBACK TO claim")
    fill(connection, 10_001 + BATCH, ROWS, due_at=DUE - 1)
    assert steps(connection, SQL.claim, claim_values()) <= before * 1.2 + 1


def test_a_look_for_due_jobs_costs_the_same_with_many_more_due_or_to_come(
    connection: sqlite3.Connection,
) -> None:
    fill(connection, 5_001, 5_000 + BATCH, due_at=DUE - 1)

    def cost() -> int:
        queue = {"queue": "default", "most": BATCH, "now": DUE}
        return steps(connection, SQL.next_queue, {"queue": ""}) + steps(connection, SQL.due_in_queue, queue)

    before = cost()
    fill(connection, 5_001 + BATCH, ROWS // 2, due_at=DUE - 1)
    fill(connection, ROWS // 2 + 1, ROWS, due_at=LATER)
    assert cost() <= before * 1.2 + 1


def test_what_falls_due_first_is_found_by_probes_of_the_index(connection: sqlite3.Connection) -> None:
    fill(connection, 5_001, ROWS, due_at=LATER)
    assert steps(connection, SQL.upcoming, {"limit": 10, "now": DUE}) <= 100


def test_lists_in_the_order_of_an_index_need_no_sorting(connection: sqlite3.Connection) -> None:
    for statement in (SQL.find, SQL.find_unsuccessful):
        assert "TEMP B-TREE" not in plan(connection, statement)


@pytest.mark.parametrize(
    ("statement", "where"),
    [
        (SQL.find, {}),
        (SQL.find_newest, {"states": "pending"}),
        (SQL.find_unsuccessful, {"states": "failed"}),
        (SQL.find_live, {"states": "pending"}),
        (SQL.find_live, {"registry": "active"}),
        (SQL.find_of_schedule, {"schedule": "nightly"}),
    ],
    ids=lambda value: value.name if isinstance(value, Statement) else "",
)
def test_a_list_of_what_is_seldom_costs_the_same_with_many_more_jobs_that_ended_well(
    connection: sqlite3.Connection, statement: Statement, where: Mapping[str, object]
) -> None:
    connection.execute("UPDATE duetime_jobs SET state = 'succeeded'")
    fill(connection, 5_001, 5_010, due_at=LATER)
    connection.execute("UPDATE duetime_jobs SET state = 'failed' WHERE id > printf('%032d', 5007)")
    connection.execute("UPDATE duetime_jobs SET schedule = 'nightly' WHERE id > printf('%032d', 5009)")
    before = steps(connection, statement, find_values(**where))
    fill(connection, 5_011, ROWS, due_at=LATER)
    connection.execute("UPDATE duetime_jobs SET state = 'succeeded' WHERE id > printf('%032d', 5010)")
    assert steps(connection, statement, find_values(**where)) <= before * 1.2 + 1


def test_jobs_are_counted_without_sorting_the_whole_table(connection: sqlite3.Connection) -> None:
    found = plan(connection, SQL.counts)
    assert "SCAN duetime_jobs" not in found
    assert "(rowid>? AND rowid<?)" in found


def test_no_job_is_left_out_of_the_counts_or_counted_twice(connection: sqlite3.Connection) -> None:
    def counted() -> list[tuple[str, str, int]]:
        return sorted(connection.execute(SQL.counts.sql))

    connection.execute("UPDATE duetime_jobs SET queue = 'mail' WHERE rowid % 3 = 0")
    connection.execute("UPDATE duetime_jobs SET state = 'failed' WHERE rowid % 7 = 0")
    # Some were pruned, and the last one is many stretches away.
    connection.execute("DELETE FROM duetime_jobs WHERE rowid < 50 OR rowid BETWEEN 3000 AND 3200")
    connection.execute("UPDATE duetime_jobs SET rowid = 1000000 WHERE rowid = 5000")
    grouped = "SELECT queue, state, count(*) FROM duetime_jobs GROUP BY queue, state"
    assert counted() == sorted(connection.execute(grouped))
    connection.execute("DELETE FROM duetime_jobs")
    assert counted() == []
