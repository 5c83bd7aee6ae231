-- Statements whose shape differs on PostgreSQL.

-- fragment: key_text
-- Text that is compared byte by byte. This fragment and those up to `new_store` are for the tables.
text COLLATE "C"

-- fragment: job_id
-- Room for the entries of new versions of a row next to the first, as there is for the versions: a page that fills up must
-- be cleared or split.
{key_text} NOT NULL PRIMARY KEY WITH (fillfactor = 60)

-- fragment: known_state
-- As one constant: it is read anew for each statement.
state = ANY ('{pending,running,succeeded,failed,cancelled,skipped}'::text[])

-- fragment: job_storage
-- Room for new versions of a row on its own page, and a vacuum that comes before the dead ones are in the way.
WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
      autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0)

-- fragment: worker_storage
-- Each row is written anew with every heartbeat.
WITH (fillfactor = 50)

-- fragment: key_storage
-- Nothing: no table is kept in the order of its key.

-- fragment: new_store
-- When the tables were made, and what tells them from those of other stores.
(extract(epoch FROM statement_timestamp()) * 1000000)::bigint, replace(gen_random_uuid()::text, '-', '')

-- fragment: named
-- A plain comparison could also be joined from the side of the jobs, by reading all of them, and is if the plan was made
-- while there were none. This way there is nothing but to look up each.
{jobs}.id = ANY (ARRAY[r.id])

-- name: succeed
-- Write runs that came to nothing but success, and tell how many did.
WITH done AS (
    UPDATE {jobs} SET
        state = 'succeeded', started_at = r.started_at, finished_at = r.finished_at,
        result = r.result, result_error = r.result_error, error = NULL, traceback = NULL,
        error_type = NULL, fingerprint = NULL, reason = NULL
    FROM {successes} AS r
    WHERE {named} AND {held}
    RETURNING 1
)
SELECT count(*) FROM done

-- name: tables
-- Name the tables of ours that there are, and tell which of them has the version; to_regclass may still answer from before
-- the wait for the lock.
SELECT relname::text, relname = '{meta}' FROM pg_class
WHERE relname IN ({our_tables}) AND relkind = 'r' AND pg_table_is_visible(oid)

-- name: migration_lock
-- Let one process at a time change the tables.
SELECT pg_advisory_xact_lock(hashtextextended('{meta}', 0))

-- name: due_in_queue
-- Count the first due jobs of a queue by task. LATERAL walks the priorities, each an ordered range of the claim index.
SELECT first.task, count(*)
FROM (
    SELECT ranged.task
    FROM generate_series(0, 9) AS p (n)
    CROSS JOIN LATERAL (
        SELECT j.task FROM {jobs} AS j
        WHERE {claimable} AND j.queue = :queue AND j.priority = p.n AND j.due_at <= {now}
        ORDER BY j.due_at, j.id LIMIT :most
    ) AS ranged
    LIMIT :most
) AS first
GROUP BY first.task

-- name: upcoming
-- Read the jobs that fall due first: the first few of each queue and priority, by the claim index, and of all gates.
WITH RECURSIVE {waiting_queues}
SELECT {now}, {names stored_job} FROM (
    SELECT first.*
    FROM waiting CROSS JOIN generate_series(0, 9) AS p (n)
    CROSS JOIN LATERAL (
        SELECT j.* FROM {jobs} AS j WHERE {claimable} AND j.queue = waiting.name AND j.priority = p.n
        ORDER BY j.due_at, j.id LIMIT :limit
    ) AS first
    UNION ALL
    (SELECT j.* FROM {jobs} AS j WHERE {at_gate} AND j.due_at >= 0 ORDER BY j.due_at LIMIT :limit)
) AS soon
ORDER BY due_at, id LIMIT :limit

-- name: has_locks
SELECT count(*) FROM pg_class WHERE relname = '{locks}' AND relkind = 'r' AND pg_table_is_visible(oid)
