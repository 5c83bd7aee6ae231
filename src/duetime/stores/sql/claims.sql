-- Claims. `claim` itself differs on each database: it is in the `claims.sql` of its folder.

-- fragment: first_of
-- Locks the first jobs of one queue: an ordered range of the index for each priority, one behind the other. The list of
-- priorities and literals instead of columns of a batch insist on that.
{claimable} AND j.priority IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) AND j.due_at <= {now} + :ahead
AND {known_task} AND {worker_lives}

-- fragment: holdable
-- True for what may be claimed by a worker that does not start it at once; before it is due, only what no request under
-- its key can replace.
(:unstarted = 0 OR (j.on_crash = 'retry' AND j.crashes = 0)) AND (:ahead = 0 OR j.unique_key IS NULL)

-- fragment: unrestricted
-- True for a queue that is neither paused nor limited.
NOT EXISTS (
    SELECT 1 FROM {queues} AS c
    WHERE c.name = q.name AND (c.paused_at IS NOT NULL OR c.most IS NOT NULL OR c.rate_count IS NOT NULL)
)

-- fragment: handed_out
-- The fields of a claim that have no default, where a claim comes packed.
j.id, j.fence + 1, :claim_id, j.task, j.payload, j.queue, j.priority, j.due_at, {now}, j.failures, j.crashes,
j.blames, j.on_crash, j.retries, j.timeout, j.schedule, j.occurrence, j.cancel_requested_at

-- fragment: rarely_handed_out
-- The others.
j.unique_key, j.tags, j.parent, j.callbacks, j.expires_at, j.result_ttl, j.failure_ttl, j.headers

-- name: quote_blobs
-- Write down as text what is bytes in jobs that wait. Columns that have a type hold none.
SELECT {now}

-- name: take
-- Mark jobs as claimed, where choosing them and marking them are two steps of one transaction.
UPDATE {jobs} SET
    state = 'running', fence = {jobs}.fence + 1, claim_id = :claim_id, worker = :worker,
    started_at = CASE WHEN :unstarted = 0 THEN {now_once} END
FROM {each chosen: id text} AS r
WHERE {named}

-- name: claims_under
-- Look up what a claim had handed out, when its answer was lost.
SELECT {claim_columns} FROM {jobs} WHERE state = 'running' AND worker = :worker AND claim_id = :claim_id

-- name: mark_started
-- Record when claims taken ahead were started.
UPDATE {jobs} SET started_at = :started_at
FROM {each rows: id text, fence int, claim_id text} AS r
WHERE {named} AND {held}

-- name: next_due
-- Tell when the next job falls due: one probe of the index per queue and priority, however many jobs wait. Of what
-- is limited only the future counts: whether the rest may start is for `claim_limited` to tell. At gates the next
-- hundred are looked at; if none is for this worker, the last of them is when to look further.
-- What is materialized would otherwise be worked out anew at every mention.
WITH {priorities},
served (name, after) AS MATERIALIZED (
    SELECT d.name, CASE WHEN q.most IS NOT NULL OR q.rate_count IS NOT NULL THEN {now} ELSE -1 END
    FROM {each queues: name text} AS d
    LEFT JOIN {queues} AS q ON q.name = d.name
    WHERE q.paused_at IS NULL
), first (after, due_at) AS MATERIALIZED (
    SELECT s.after, (
        SELECT j.due_at FROM {jobs} AS j {index claim}
        WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NULL AND j.queue = s.name AND j.priority = p.n
          AND j.due_at > s.after
          AND {known_task}
        ORDER BY j.due_at, j.id LIMIT 1
    )
    FROM served AS s CROSS JOIN priorities AS p
)
SELECT {now}, min(CASE WHEN first.after < 0 THEN first.due_at END),
       min(CASE WHEN first.after >= 0 THEN first.due_at END),
       (
           SELECT coalesce(
               min(CASE WHEN near.task IN (SELECT t.name FROM {each tasks: name text} AS t)
                         AND near.queue IN (SELECT q.name FROM {each queues: name text} AS q) THEN near.due_at END),
               CASE WHEN count(*) = 100 THEN max(near.due_at) END
           )
           FROM (
               SELECT j.task, j.queue, j.due_at FROM {jobs} AS j {index gated_due}
               WHERE {at_gate} AND j.due_at > {now} AND j.due_at >= 0
               ORDER BY j.due_at LIMIT 100
           ) AS near
       ),
       {limits_in_use}
FROM first
