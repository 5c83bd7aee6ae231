-- Queues: what is set for them, what is in them, and emptying them.

-- name: pause_queue
-- Hand out nothing more from a queue.
INSERT INTO {queues} (name, paused_at, paused_reason) VALUES (:queue, {now}, :reason)
ON CONFLICT (name) DO UPDATE SET paused_at = coalesce({queues}.paused_at, excluded.paused_at),
                                 paused_reason = excluded.paused_reason

-- name: resume_queue
-- Hand out jobs of a queue again.
UPDATE {queues} SET paused_at = NULL, paused_reason = NULL
WHERE name = :queue AND paused_at IS NOT NULL

-- name: outlook
-- Tell the time, and whether a queue hands out jobs.
SELECT {now}, q.paused_at, q.paused_reason
FROM (SELECT 1 AS one) AS always LEFT JOIN {queues} AS q ON q.name = :queue

-- name: queues
-- Read what is set for queues.
SELECT name, paused_at, paused_reason, most, rate_count, rate_period FROM {queues} ORDER BY name

-- name: tally_waiting
-- Count what waits in each queue, due and not, up to a bound in each range of the claim index. The queues are
-- found by a probe of the index for each. The orders keep it to the index, whatever the statistics say.
WITH RECURSIVE waiting (name) AS (
    SELECT (SELECT j.queue FROM {jobs} AS j {index claim} WHERE {claimable} ORDER BY j.queue LIMIT 1)
    UNION ALL
    SELECT (SELECT j.queue FROM {jobs} AS j {index claim}
            WHERE {claimable} AND j.queue > waiting.name ORDER BY j.queue LIMIT 1)
    FROM waiting WHERE waiting.name IS NOT NULL
), {priorities}
SELECT q.name, p.n,
       (SELECT count(*) FROM (
            SELECT 1 FROM {jobs} AS j {index claim}
            WHERE {claimable} AND j.queue = q.name AND j.priority = p.n AND j.due_at <= {now}
            ORDER BY j.due_at, j.id LIMIT :most
       ) AS due),
       (SELECT count(*) FROM (
            SELECT 1 FROM {jobs} AS j {index claim}
            WHERE {claimable} AND j.queue = q.name AND j.priority = p.n AND j.due_at > {now}
            ORDER BY j.due_at, j.id LIMIT :most
       ) AS later)
FROM waiting AS q CROSS JOIN priorities AS p
WHERE q.name IS NOT NULL

-- name: tally_gated
-- Count what waits at gates, up to a bound in all.
SELECT gated.queue, gated.due, count(*)
FROM (
    SELECT j.queue, j.due_at <= {now} AS due FROM {jobs} AS j
    WHERE {at_gate} AND j.due_at >= 0
    ORDER BY j.due_at LIMIT :most
) AS gated
GROUP BY gated.queue, gated.due

-- name: tally_running
-- Count what workers have.
SELECT j.queue, j.started_at IS NOT NULL, count(*)
FROM {jobs} AS j WHERE j.state = 'running'
GROUP BY j.queue, j.started_at IS NOT NULL

-- name: tally_latest
-- Count the newest jobs, whatever their state: history has no index, and needs none for a look at its end.
SELECT latest.queue, latest.state, latest.started_at IS NOT NULL, count(*)
FROM (SELECT queue, state, started_at FROM {jobs} ORDER BY id DESC LIMIT :most) AS latest
GROUP BY latest.queue, latest.state, latest.started_at IS NOT NULL

-- name: purgeable
-- Lock some jobs of a queue that are not claimed.
SELECT j.id FROM {jobs} AS j {index claim}
WHERE {claimable} AND j.queue = :queue AND j.created_at <= :before
ORDER BY j.priority, j.due_at, j.id
LIMIT :limit
{skip_locked j}

-- name: purgeable_gated
-- The same for jobs that wait at gates.
SELECT j.id FROM {jobs} AS j
WHERE {at_gate} AND j.due_at >= 0
  AND j.queue = :queue AND j.created_at <= :before
ORDER BY j.due_at
LIMIT :limit
{skip_locked j}

-- name: counts
-- Count jobs by queue and state.
SELECT queue, state, count(*) FROM {jobs} GROUP BY queue, state
