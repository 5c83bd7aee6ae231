"""PostgreSQL reads what it needs and no more, however many jobs wait."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from duetime.stores.sql.driver import Statement
from duetime.stores.sql.postgres.connection import PostgresConnector
from tests.plans.kit import (
    BATCH,
    DUE,
    LATER,
    NEXT_DUE,
    ROWS,
    claim_values,
    find_values,
    job_id,
    pulse_values,
    settle_values,
    succeed_values,
)
from tests.plans.postgres import (
    PLANS,
    SQL,
    Connection,
    Copies,
    buffers,
    explain,
    explain_prepared,
    fill,
    insert,
    nodes,
    prepare,
    run_some,
    scans,
    undone,
)


@pytest.mark.covers("claim-reads-index")
@PLANS
@pytest.mark.parametrize("due", [0, 50, ROWS])
async def test_a_claim_walks_the_claim_index_in_order(copies: Copies, mode: str, due: int) -> None:
    connection = await copies.with_jobs(due=due, later=ROWS - due)
    async with undone(connection, mode):
        plan = await explain(connection, SQL.claim, claim_values())
    assert scans(plan) == {("Index Scan", "duetime_jobs_claim"), ("Tid Scan", None)}
    assert not {"Sort", "Incremental Sort"} & {node["Node Type"] for node in nodes(plan)}
    assert plan["Actual Rows"] == min(due, BATCH)
    # Twenty empty ranges, and for each job taken the index, its row, its lock and its new version.
    assert buffers(plan) < 100 + 22 * min(due, BATCH)


@pytest.mark.covers("claim-reads-index")
@pytest.mark.parametrize("limit", [1, BATCH, 10 * BATCH])
@pytest.mark.parametrize("due", [0, ROWS])
async def test_a_claim_is_not_planned_each_time(copies: Copies, due: int, limit: int) -> None:
    connection = await copies.with_jobs(due=due, later=ROWS - due)
    values = claim_values(limit=limit)
    claim = await connection.prepare(SQL.claim.sql, name="kept")
    async with undone(connection):
        for _ in range(8):
            await claim.fetch(*[values[name] for name in SQL.claim.params])
        counted = "SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE name = 'kept'"
        # The server tries five times what it would gain by planning for the values given.
        assert tuple(await connection.fetchrow(counted) or ()) == (5, 3)


async def claim_half(connection: Connection) -> None:
    await connection.execute("ALTER TABLE duetime_jobs SET (autovacuum_enabled = false)")
    await fill(connection, due=ROWS, later=0)
    await connection.execute(
        f"UPDATE duetime_jobs SET due_at = {DUE - 2} WHERE id <= lpad('{ROWS // 2}', 32, '0')"
    )
    await connection.execute("VACUUM duetime_jobs")
    await connection.execute(f"UPDATE duetime_jobs SET state = 'succeeded' WHERE due_at = {DUE - 2}")


@pytest.mark.covers("claim-reads-index")
@PLANS
async def test_a_claim_that_knows_where_to_begin_does_not_walk_over_what_was_claimed_before(
    copies: Copies, mode: str
) -> None:
    connection = await copies.connect("half claimed before", claim_half)
    read: list[int] = []
    for floor in (None, DUE - 1):
        async with undone(connection, mode):
            plan = await explain(connection, SQL.claim, claim_values(floor=floor))
        assert plan["Actual Rows"] == BATCH
        read.append(buffers(plan))
    assert read[1] < 100 + 22 * BATCH < read[0]


@pytest.mark.covers("claim-reads-index")
@PLANS
async def test_the_next_due_time_is_one_probe_per_range(copies: Copies, mode: str) -> None:
    connection = await copies.with_jobs(due=0, later=ROWS)
    async with undone(connection, mode):
        plan = await explain(connection, SQL.next_due, NEXT_DUE)
    assert {index for _, index in scans(plan)} == {"duetime_jobs_claim", "duetime_jobs_gated_due"}
    assert buffers(plan) < 120


@pytest.mark.covers("lease-behind-backlog")
@PLANS
@pytest.mark.parametrize("task", ["greet", "stranger"])
@pytest.mark.parametrize("due", [0, ROWS])
async def test_a_heartbeat_reads_no_more_with_very_many_jobs_due_of_whatever_task(
    copies: Copies, mode: str, due: int, task: str
) -> None:
    connection = await copies.with_jobs(due=due, later=ROWS - due)
    async with undone(connection, mode):
        plan = await explain(connection, SQL.pulse, pulse_values(task))
    assert "duetime_jobs_claim" in {index for _, index in scans(plan)}
    assert not {"Sort", "Incremental Sort"} & {node["Node Type"] for node in nodes(plan)}
    assert buffers(plan) < 300
    assert all(node["Actual Rows"] <= BATCH for node in nodes(plan))


@pytest.mark.covers("claim-reads-index")
@PLANS
@pytest.mark.parametrize("count", [1, BATCH, 10 * BATCH])
@pytest.mark.parametrize(
    ("statement", "values"),
    [(SQL.settle, settle_values), (SQL.succeed, succeed_values)],
    ids=["any", "success"],
)
async def test_a_settlement_goes_by_primary_key_whatever_the_planner_learnt(
    copies: Copies,
    mode: str,
    count: int,
    statement: Statement,
    values: Callable[[int], Mapping[str, object]],
) -> None:
    connection = await copies.with_jobs(due=0, later=ROWS // 10)
    await connection.execute("ALTER TABLE duetime_jobs SET (autovacuum_enabled = false)")
    await run_some(connection, count)
    async with undone(connection, mode):
        plan = await explain(connection, statement, values(count))
    assert max(node["Actual Rows"] for node in nodes(plan) if node["Node Type"] == "ModifyTable") == count
    assert scans(plan) == {("Index Scan", "duetime_jobs_pkey")}
    assert buffers(plan) < 100 + 40 * count


HELD = {"rows": json.dumps([[job_id(n), 1, "c"] for n in range(1, BATCH + 1)]), "started_at": 1}


@pytest.mark.covers("claim-reads-index")
@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (SQL.claim, claim_values()),
        (SQL.settle, settle_values()),
        (SQL.succeed, succeed_values()),
        (SQL.next_due, NEXT_DUE),
        (SQL.pulse, pulse_values()),
        (SQL.pulse, pulse_values("stranger")),
        (SQL.mark_started, HELD),
        (SQL.holders, HELD),
        (SQL.settled_before, HELD),
        (SQL.held_by, {"worker": "w"}),
    ],
    ids=lambda value: value.name if isinstance(value, Statement) else "",
)
async def test_a_plan_from_before_there_were_jobs_does_not_read_all_of_them_when_there_are(
    connection: Connection, postgres_url: str, statement: Statement, values: Mapping[str, object]
) -> None:
    await connection.execute("ALTER TABLE duetime_jobs SET (autovacuum_enabled = false)")
    await connection.execute("VACUUM ANALYZE duetime_jobs")
    ours = await PostgresConnector(postgres_url).connect()
    await ours.execute("SET plan_cache_mode = force_generic_plan")
    await prepare(ours, statement)
    await explain_prepared(ours, statement, values)
    await insert(connection, due=ROWS // 10, later=0)
    await run_some(connection, BATCH)
    plan = await explain_prepared(ours, statement, values)
    await ours.close()
    assert "Seq Scan" not in {kind for kind, _ in scans(plan)}
    assert buffers(plan) < 100 + 25 * BATCH
    assert all(node.get("Rows Removed by Filter", 0) <= BATCH for node in nodes(plan))


ROW = json.dumps([[job_id(1), 1, "c", "w"]])
OTHER = json.dumps([[job_id(1), "greet", "{}", DUE, 0, "default", 5, "retry"]])
EDIT = json.dumps([[job_id(1), LATER, None, None, "mail"]])
PROGRESS = json.dumps([[job_id(1), 1, "c", 0.5, None]])
LOG = json.dumps([[job_id(1), 1, "c", 1, 1, "line"]])
DROP = json.dumps([[job_id(1), 0, "", 1, 5]])
FORGET = json.dumps([[job_id(1), "gone"]])
KEYED = json.dumps([[job_id(1), "greet", "k"]])
NAMES = json.dumps([["nightly", LATER, 1]])


@PLANS
@pytest.mark.parametrize(
    ("statement", "values", "index"),
    [
        (SQL.mark_started, {"rows": ROW, "started_at": 1}, "duetime_jobs_pkey"),
        (SQL.note_progress, {"rows": PROGRESS}, "duetime_jobs_pkey"),
        (SQL.add_logs, {"rows": LOG}, "duetime_jobs_pkey"),
        (SQL.drop_logs, {"rows": DROP}, "duetime_jobs_pkey"),
        (SQL.holders, {"rows": ROW}, "duetime_jobs_pkey"),
        (SQL.settled_before, {"rows": ROW}, "duetime_jobs_pkey"),
        (SQL.adopt, {"rows": ROW, "worker": "w", "claim_id": "d", "now": DUE}, "duetime_jobs_pkey"),
        (SQL.cancel, {"rows": ROW, "reason": "r", "now": DUE}, "duetime_jobs_pkey"),
        (SQL.edit, {"rows": EDIT, "latest": LATER, "now": DUE}, "duetime_jobs_pkey"),
        (SQL.standing, {"rows": ROW}, "duetime_jobs_pkey"),
        (SQL.get, {"rows": ROW, "now": DUE}, "duetime_jobs_pkey"),
        (SQL.key_holders, {"rows": KEYED, "now": DUE}, "duetime_jobs_key duetime_jobs_pkey"),
        (SQL.replace_keyed, {"rows": OTHER, "now": DUE}, "duetime_jobs_pkey"),
        (SQL.free_keys, {"rows": ROW}, "duetime_jobs_pkey"),
        (SQL.prunable, {"after": "", "stretch": 100, "now": DUE}, "duetime_jobs_pkey"),
        (SQL.latest_occurrences, {"rows": NAMES, "others": 9}, "duetime_jobs_occurrence"),
        (
            SQL.past_occurrences,
            {"schedule": "s", "until": DUE, "limit": 9, "made": 0, "now": DUE},
            "duetime_jobs_occurrence",
        ),
        (SQL.forget, {"rows": FORGET}, "duetime_jobs_pkey"),
        (SQL.delete_jobs, {"rows": ROW}, "duetime_jobs_pkey"),
        (SQL.held_by, {"worker": "w"}, "duetime_jobs_running"),
        (SQL.claims_under, {"worker": "w", "claim_id": "c", "now": DUE}, "duetime_jobs_running"),
        (SQL.orphans, {"now": DUE}, "duetime_jobs_running"),
        (SQL.forsaken, {"now": DUE}, "duetime_jobs_running"),
        (SQL.occurrence_ids, {"rows": NAMES}, "duetime_jobs_occurrence"),
        (SQL.tally_waiting, {"most": 10, "now": DUE}, "duetime_jobs_claim"),
        (SQL.next_queue, {"queue": "mail"}, "duetime_jobs_claim"),
        (SQL.due_in_queue, {"queue": "mail", "most": 10, "now": DUE}, "duetime_jobs_claim"),
        (SQL.due_at_gates, {"most": 10, "now": DUE}, "duetime_jobs_gated_due"),
        (SQL.tally_gated, {"most": 10, "now": DUE}, "duetime_jobs_gated_due"),
        (SQL.tally_running, {}, "duetime_jobs_running"),
        (SQL.tally_latest, {"most": 10}, "duetime_jobs_pkey"),
        (SQL.purgeable, {"queue": "mail", "before": DUE, "limit": 10}, "duetime_jobs_claim"),
        (
            SQL.withdraw,
            {"rows": NAMES, "reason": "r", "now": DUE},
            "duetime_jobs_history",
        ),
        (
            SQL.withdraw_claimed,
            {"rows": NAMES, "reason": "r", "now": DUE},
            "duetime_jobs_running duetime_jobs_history",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Statement) else "",
)
@pytest.mark.covers("cancel-searches")
async def test_a_statement_uses_the_index_made_for_it(
    copies: Copies, mode: str, statement: Statement, values: Mapping[str, object], index: str
) -> None:
    connection = await copies.with_jobs(due=0, later=ROWS // 10)
    async with undone(connection, mode):
        plan = await explain(connection, statement, values)
    used = {(kind, name) for kind, name in scans(plan) if kind != "Bitmap Heap Scan"}
    assert used, "the table was not read at all"
    assert {name for _, name in used} <= set(index.split())
    assert buffers(plan) < 200


async def write_logs(connection: Connection) -> None:
    await fill(connection, due=0, later=1_000)
    await connection.execute(
        f"""
        INSERT INTO duetime_logs (job_id, fence, line, attempt, text)
        SELECT lpad(i::text, 32, '0'), 0, 1, 1, 'line' FROM generate_series(1, {ROWS // 10}) AS i
        """
    )
    await connection.execute("VACUUM ANALYZE duetime_logs")


@PLANS
@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (SQL.drop_logs, {"rows": DROP}),
        (SQL.logs, {"job_id": job_id(1), "fence": 0, "line": 0}),
        (SQL.delete_logs, {"rows": ROW}),
    ],
    ids=lambda value: value.name if isinstance(value, Statement) else "",
)
async def test_the_log_of_a_job_is_found_among_many(
    copies: Copies, mode: str, statement: Statement, values: Mapping[str, object]
) -> None:
    connection = await copies.connect("logs", write_logs)
    async with undone(connection, mode):
        plan = await explain(connection, statement, values)
    used = scans(plan, "duetime_logs")
    assert {name for kind, name in used if kind != "Bitmap Heap Scan"} == {"duetime_logs_pkey"}
    assert buffers(plan) < 200


@PLANS
async def test_a_look_for_due_jobs_reads_no_more_with_very_many_due_or_to_come(
    copies: Copies, mode: str
) -> None:
    connection = await copies.with_jobs(due=ROWS // 2, later=ROWS // 2)
    async with undone(connection, mode):
        queue = await explain(connection, SQL.next_queue, {"queue": ""})
        tasks = await explain(connection, SQL.due_in_queue, {"queue": "default", "most": BATCH, "now": DUE})
    assert buffers(queue) < 20
    assert buffers(tasks) < 200


@PLANS
async def test_what_falls_due_first_is_found_by_probes_of_the_index(copies: Copies, mode: str) -> None:
    connection = await copies.with_jobs(due=50, later=ROWS - 50)
    async with undone(connection, mode):
        plan = await explain(connection, SQL.upcoming, {"limit": 10, "now": DUE})
    assert {index for _, index in scans(plan)} == {"duetime_jobs_claim", "duetime_jobs_gated_due"}
    assert buffers(plan) < 300


async def end_well(connection: Connection) -> None:
    # Stored as they are in the end: of rows that were changed the server may keep the old ones for a while.
    await fill(
        connection,
        due=0,
        later=ROWS // 10,
        state="CASE WHEN i > 9990 THEN 'pending' WHEN i > 9980 THEN 'failed' ELSE 'succeeded' END",
        schedule="CASE WHEN i > 9985 THEN 'nightly' END",
    )


@PLANS
@pytest.mark.parametrize(
    ("statement", "where", "index"),
    [
        (SQL.find, {}, "duetime_jobs_pkey"),
        (SQL.find_newest, {"states": "pending"}, "duetime_jobs_pkey"),
        (SQL.find_unsuccessful, {"states": "failed"}, "duetime_jobs_unsuccessful"),
        (
            SQL.find_live,
            {"states": "pending"},
            "duetime_jobs_running duetime_jobs_claim duetime_jobs_gated duetime_jobs_gated_due",
        ),
        (SQL.find_of_schedule, {"schedule": "nightly"}, "duetime_jobs_history"),
    ],
    ids=lambda value: value.name if isinstance(value, Statement) else "",
)
async def test_a_list_of_what_is_seldom_reads_little_among_many_jobs_that_ended_well(
    copies: Copies, mode: str, statement: Statement, where: Mapping[str, object], index: str
) -> None:
    connection = await copies.connect("nearly all ended well", end_well)
    async with undone(connection, mode):
        plan = await explain(connection, statement, find_values(**where))
    used = {name for kind, name in scans(plan) if kind != "Bitmap Heap Scan"}
    assert used
    assert used <= set(index.split())
    assert buffers(plan) < 400


PAGE = 50


@PLANS
@pytest.mark.parametrize(
    ("statement", "where"),
    [
        (SQL.find_newest, {"newest": 10 * PAGE}),
        (SQL.find_newest, {"newest": 10 * PAGE, "tag": "|rare|"}),
        (SQL.find_running, {"states": "running"}),
        (SQL.find_live, {"states": "pending"}),
        (SQL.find_unsuccessful, {"states": "failed"}),
        (SQL.find_of_schedule, {"schedule": "nightly"}),
        (SQL.reach, {"look_at": 10 * PAGE}),
        (SQL.reach_unsuccessful, {"look_at": 10 * PAGE}),
        (SQL.count_live, {"look_at": 10 * PAGE}),
        (SQL.count_of_schedule, {"look_at": 10 * PAGE, "schedule": "nightly"}),
        (SQL.find, {"from_id": job_id(ROWS // 10 - 10 * PAGE + 1), "queue": "nowhere"}),
    ],
    ids=lambda value: value.name if isinstance(value, Statement) else "-".join(value),
)
async def test_a_page_reads_at_most_ten_rows_for_each_that_it_may_have(
    copies: Copies, mode: str, statement: Statement, where: Mapping[str, object]
) -> None:
    connection = await copies.connect("nearly all ended well", end_well)
    async with undone(connection, mode):
        plan = await explain(connection, statement, find_values(**where))
    read = 0
    for node in nodes(plan):
        if "Relation Name" in node:
            rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            read += round(rows * node["Actual Loops"])
    assert read <= 10 * PAGE


@PLANS
async def test_a_count_of_what_waits_ends_at_its_bound(copies: Copies, mode: str) -> None:
    connection = await copies.with_jobs(due=50, later=ROWS - 50)
    async with undone(connection, mode):
        plan = await explain(connection, SQL.count_live, {"look_at": 10 * PAGE, "now": DUE})
    assert buffers(plan) < 400
