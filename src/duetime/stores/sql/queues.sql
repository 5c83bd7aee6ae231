-- Queues: what is set for them, what is in them, and emptying them.

-- name: pause_queue
INSERT INTO {queues} (name, paused_at, paused_reason) VALUES (:queue, {now}, :reason)
ON CONFLICT (name) DO UPDATE SET paused_at = coalesce({queues}.paused_at, excluded.paused_at),
                                 paused_reason = excluded.paused_reason

-- name: resume_queue
UPDATE {queues} SET paused_at = NULL, paused_reason = NULL
WHERE name = :queue AND paused_at IS NOT NULL
RETURNING name

-- name: outlook
SELECT {now}, q.paused_at, q.paused_reason
FROM (SELECT 1 AS one) AS always LEFT JOIN {queues} AS q ON q.name = :queue

-- name: queues
SELECT name, paused_at, paused_reason, most, rate_count, rate_period FROM {queues} ORDER BY name

-- fragment: waiting_queues
-- The queues in which something waits, found by a probe of the claim index for each.
waiting (name) AS (
    SELECT (SELECT j.queue FROM {jobs} AS j {index claim} WHERE {claimable} ORDER BY j.queue LIMIT 1)
    UNION ALL
    SELECT (SELECT j.queue FROM {jobs} AS j {index claim}
            WHERE {claimable} AND j.queue > waiting.name ORDER BY j.queue LIMIT 1)
    FROM waiting WHERE waiting.name IS NOT NULL
)

-- name: tally_waiting
-- Count what waits in each queue, due and not, up to a bound in each range of the claim index. The orders keep it to the
-- index, whatever the statistics say.
WITH RECURSIVE {waiting_queues}, {priorities}
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
FROM waiting AS q CROSS JOIN priorities AS p WHERE q.name IS NOT NULL

-- name: tally_gated
SELECT gated.queue, gated.due, count(*)
FROM (
    SELECT j.queue, j.due_at <= {now} AS due FROM {jobs} AS j
    WHERE {at_gate} AND j.due_at >= 0 ORDER BY j.due_at LIMIT :most
) AS gated
GROUP BY gated.queue, gated.due

-- name: tally_running
SELECT j.queue, j.started_at IS NOT NULL, count(*)
FROM {jobs} AS j WHERE j.state = 'running' GROUP BY j.queue, j.started_at IS NOT NULL

-- name: tally_latest
-- Count the newest jobs, whatever their state: history has no index, and needs none for a look at its end.
SELECT latest.queue, latest.state, latest.started_at IS NOT NULL, count(*)
FROM (SELECT queue, state, started_at FROM {jobs} ORDER BY id DESC LIMIT :most) AS latest
GROUP BY latest.queue, latest.state, latest.started_at IS NOT NULL

-- name: next_queue
-- Name the first queue behind another in which something waits: one probe of the claim index.
SELECT j.queue FROM {jobs} AS j {index claim} WHERE {claimable} AND j.queue > :queue ORDER BY j.queue LIMIT 1

-- name: due_in_queue
-- Count the first due jobs of a queue by task: an ordered range of the claim index for each priority.
SELECT first.task, count(*)
FROM (
    SELECT j.task FROM {jobs} AS j {index claim}
    WHERE {claimable} AND j.queue = :queue AND j.priority IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) AND j.due_at <= {now}
    ORDER BY j.priority, j.due_at, j.id LIMIT :most
) AS first
GROUP BY first.task

-- name: due_at_gates
SELECT first.queue, first.task, count(*)
FROM (
    SELECT j.queue, j.task FROM {jobs} AS j
    WHERE {at_gate} AND j.due_at >= 0 AND j.due_at <= {now} ORDER BY j.due_at LIMIT :most
) AS first
GROUP BY first.queue, first.task

-- name: purgeable
SELECT j.id FROM {jobs} AS j {index claim}
WHERE {claimable} AND j.queue = :queue AND j.created_at <= :before
ORDER BY j.priority, j.due_at, j.id LIMIT :limit {skip_locked j}

-- name: purgeable_gated
SELECT j.id FROM {jobs} AS j
WHERE {at_gate} AND j.due_at >= 0 AND j.queue = :queue AND j.created_at <= :before
ORDER BY j.due_at LIMIT :limit {skip_locked j}

-- name: counts
SELECT queue, state, count(*) FROM {jobs} GROUP BY queue, state
