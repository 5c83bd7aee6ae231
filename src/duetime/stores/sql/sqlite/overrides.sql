-- Statements whose shape differs on SQLite.

-- name: claim
-- Choose jobs of one queue, for `take`. Priorities are walked from the outside in, each an ordered range of the
-- index, and the walk stops at the limit; CROSS JOIN and the named index insist on that. All rows come packed
-- in one: Python's lock is taken and left once for every row that SQLite returns. Each is packed where it is found,
-- because a row that leaves the inner query has all its columns copied, and without what few jobs ask for.
WITH {priorities}
SELECT '[' || coalesce(group_concat(claim, ','), '') || ']', json_group_array(place)
FROM (
    SELECT j.rowid AS place, CASE
        WHEN coalesce(j.unique_key, j.tags, j.parent, j.callbacks, j.expires_at, j.result_ttl, j.failure_ttl) IS NULL
        THEN json_array({handed_out})
        ELSE json_array({handed_out}, j.unique_key, j.tags, j.parent, j.callbacks, j.expires_at, j.result_ttl,
                        j.failure_ttl)
    END AS claim
    FROM {each queues: name text, most int} AS q
    CROSS JOIN priorities AS p
    CROSS JOIN {jobs} AS j {index claim}
    WHERE p.n < :below_priority
      AND j.state = 'pending' AND j.waits = 0 AND j.gate IS NULL AND j.queue = q.name AND j.priority = p.n
      AND j.due_at <= {now} + :ahead
      AND j.due_at > CASE WHEN :ahead = 0 THEN -1 ELSE {now} END
      AND {holdable}
      AND j.task IN (SELECT t.name FROM {each tasks: name text} AS t)
      AND EXISTS (SELECT 1 FROM {workers} WHERE id = :worker AND state = 'alive')
      AND NOT EXISTS (
          SELECT 1 FROM {queues} AS p
          WHERE p.name = q.name AND (p.paused_at IS NOT NULL OR p.most IS NOT NULL OR p.rate_count IS NOT NULL)
      )
    LIMIT :limit
)

-- fragment: handed_out
-- The fields of a claim that have no default.
j.id, j.fence + 1, :claim_id, j.task, j.payload, j.queue, j.priority, j.due_at, {now}, j.failures, j.crashes,
j.blames, j.on_crash, j.retries, j.timeout, j.schedule, j.occurrence, j.cancel_requested_at

-- name: take
-- Mark as claimed what `claim` has chosen in the same transaction.
UPDATE {jobs} SET
    state = 'running', fence = fence + 1, claim_id = :claim_id, worker = :worker,
    started_at = CASE WHEN :unstarted = 0 THEN {now} END
WHERE rowid IN (SELECT value FROM json_each(:chosen))

-- name: quote_blobs
-- Turn bytes in waiting jobs into text: JSON cannot hold bytes, so they would break every claim that reads them.
UPDATE {jobs} SET
    payload = CASE typeof(payload) WHEN 'blob' THEN quote(payload) ELSE payload END,
    failures = CASE typeof(failures) WHEN 'blob' THEN quote(failures) ELSE failures END,
    crashes = CASE typeof(crashes) WHEN 'blob' THEN quote(crashes) ELSE crashes END,
    blames = CASE typeof(blames) WHEN 'blob' THEN quote(blames) ELSE blames END,
    on_crash = CASE typeof(on_crash) WHEN 'blob' THEN quote(on_crash) ELSE on_crash END,
    retries = CASE typeof(retries) WHEN 'blob' THEN quote(retries) ELSE retries END,
    timeout = CASE typeof(timeout) WHEN 'blob' THEN quote(timeout) ELSE timeout END,
    schedule = CASE typeof(schedule) WHEN 'blob' THEN quote(schedule) ELSE schedule END,
    occurrence = CASE typeof(occurrence) WHEN 'blob' THEN quote(occurrence) ELSE occurrence END,
    cancel_requested_at = CASE typeof(cancel_requested_at) WHEN 'blob' THEN quote(cancel_requested_at) ELSE cancel_requested_at END,
    unique_key = CASE typeof(unique_key) WHEN 'blob' THEN quote(unique_key) ELSE unique_key END,
    tags = CASE typeof(tags) WHEN 'blob' THEN quote(tags) ELSE tags END,
    parent = CASE typeof(parent) WHEN 'blob' THEN quote(parent) ELSE parent END,
    callbacks = CASE typeof(callbacks) WHEN 'blob' THEN quote(callbacks) ELSE callbacks END,
    expires_at = CASE typeof(expires_at) WHEN 'blob' THEN quote(expires_at) ELSE expires_at END,
    result_ttl = CASE typeof(result_ttl) WHEN 'blob' THEN quote(result_ttl) ELSE result_ttl END,
    failure_ttl = CASE typeof(failure_ttl) WHEN 'blob' THEN quote(failure_ttl) ELSE failure_ttl END
WHERE state = 'pending' AND 'blob' IN (
    typeof(payload), typeof(failures), typeof(crashes), typeof(blames), typeof(on_crash), typeof(retries),
    typeof(timeout), typeof(schedule), typeof(occurrence), typeof(cancel_requested_at), typeof(unique_key),
    typeof(tags), typeof(parent), typeof(callbacks), typeof(expires_at), typeof(result_ttl), typeof(failure_ttl)
)

-- name: has_schema
-- Tell whether there are any tables of ours.
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '{meta}'

-- name: upcoming
-- Read the jobs that fall due first: the first few of each queue and priority, by the claim index, and of all gates.
WITH RECURSIVE {priorities},
waiting (name) AS (
    SELECT min(j.queue) FROM {jobs} AS j {index claim}
    WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NULL
    UNION ALL
    SELECT (SELECT min(j.queue) FROM {jobs} AS j {index claim}
            WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NULL AND j.queue > waiting.name)
    FROM waiting WHERE waiting.name IS NOT NULL
)
SELECT {now}, {job_columns} FROM {jobs}
WHERE id IN (
    SELECT first.id FROM waiting CROSS JOIN priorities AS p
    JOIN {jobs} AS first ON first.id IN (
        SELECT j.id FROM {jobs} AS j {index claim}
        WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NULL AND j.queue = waiting.name AND j.priority = p.n
        ORDER BY j.due_at, j.id LIMIT :limit
    )
    UNION ALL
    SELECT gated.id FROM (
        SELECT j.id FROM {jobs} AS j
        WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NOT NULL ORDER BY j.due_at LIMIT :limit
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
