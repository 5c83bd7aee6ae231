-- Statements whose shape differs on SQLite.

-- fragment: key_text
-- Text that is compared byte by byte. This fragment and those up to `new_store` are for the tables.
text

-- fragment: job_id
-- What comes behind the name of the column.
text NOT NULL PRIMARY KEY

-- fragment: known_state
-- SQLite builds a table for an IN of more than two at every change of a row.
state = 'pending' OR state = 'running' OR state = 'succeeded' OR state = 'failed' OR state = 'cancelled' OR state = 'skipped'

-- fragment: job_storage
-- Nothing: no table needs room for new versions of its rows.

-- fragment: worker_storage
-- The same.

-- fragment: key_storage
-- What is kept in the order of its key.
WITHOUT ROWID

-- fragment: new_store
-- When the tables were made, and what tells them from those of other stores.
CAST(strftime('%s', 'now') AS integer) * 1000000, lower(hex(randomblob(16)))

-- fragment: newest_by_hand
-- The newest that ran of those that were triggered by hand: what the index has behind its columns rises with time.
(SELECT j.id {made_by} AND j.occurrence IS NULL AND {ran} ORDER BY j.rowid DESC LIMIT 1)

-- name: quote_blobs
-- Turn bytes in waiting jobs into text: JSON cannot hold bytes, so they would break every claim that reads them.
UPDATE {jobs} SET {names quotable: $ = CASE typeof($) WHEN 'blob' THEN quote($) ELSE $ END}
WHERE state = 'pending' AND 'blob' IN ({names quotable: typeof($)})

-- fragment: quotable
-- What a claim reads of a job, but for the columns that its indexes are ordered by.
payload text, failures int, crashes int, blames int, on_crash text, retries int, timeout int, schedule text, occurrence int,
cancel_requested_at int, unique_key text, tags text, parent text, callbacks text, expires_at int, result_ttl int,
failure_ttl int, headers text

-- name: tables
-- Name the tables of ours that there are, and tell which of them has the version.
SELECT name, name = '{meta}' FROM sqlite_master WHERE type = 'table' AND name IN ({our_tables})

-- name: upcoming
-- Read the jobs that fall due first: the first few of each queue and priority, by the claim index, and of all gates.
WITH RECURSIVE {waiting_queues}, {priorities}
SELECT {now}, {names stored_job} FROM {jobs}
WHERE id IN (
    SELECT first.id FROM waiting CROSS JOIN priorities AS p
    JOIN {jobs} AS first ON first.id IN (
        SELECT j.id FROM {jobs} AS j {index claim}
        WHERE {claimable} AND j.queue = waiting.name AND j.priority = p.n
        ORDER BY j.due_at, j.id LIMIT :limit
    )
    UNION ALL
    SELECT gated.id FROM (
        SELECT j.id FROM {jobs} AS j WHERE {at_gate} AND j.due_at >= 0 ORDER BY j.due_at LIMIT :limit
    ) AS gated
)
ORDER BY due_at, id LIMIT :limit

-- name: counts
-- Count jobs by queue and state, a stretch of the table at a time: what one has counted is a few rows, while to group
-- the whole table sorts it, in memory once there is a worker. That takes longer, too.
WITH RECURSIVE stretches (first) AS (
    SELECT min(rowid) FROM {jobs}
    UNION ALL
    SELECT (SELECT min(rowid) FROM {jobs} WHERE rowid >= first + 4096) FROM stretches WHERE first IS NOT NULL
)
SELECT json_extract(part.value, '$[0]'), json_extract(part.value, '$[1]'), sum(json_extract(part.value, '$[2]'))
FROM stretches, json_each((
    SELECT json_group_array(json_array(queue, state, amount))
    FROM (
        SELECT queue, state, count(*) AS amount FROM {jobs} WHERE rowid >= first AND rowid < first + 4096
        GROUP BY queue, state
    )
)) AS part
GROUP BY 1, 2

-- name: has_locks
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '{locks}'
