-- Claims, as PostgreSQL runs them.

-- name: claim
-- Hand out jobs of all queues. LATERAL walks queues, then priorities, each an ordered range of the index, and
-- stops at the limits; MATERIALIZED keeps the walk from being run twice. What is locked is where it was seen: to
-- find it there again takes no index.
-- Ten priorities, whatever is asked for: were their number a parameter, the server would find planning for each value
-- better than a plan to keep, and plan every claim anew, which takes as long as to claim fifty jobs.
WITH demand AS MATERIALIZED (
    SELECT q.name, q.most, :ahead::bigint AS ahead, :unstarted::int AS unstarted, {now} AS now,
           ARRAY(SELECT t.name FROM {each tasks: name text} AS t) AS tasks
    FROM {each queues: name text, most int} AS q
    WHERE {worker_lives} AND {unrestricted}
), picked AS MATERIALIZED (
    SELECT taken.place
    FROM demand AS d
    CROSS JOIN LATERAL (
        SELECT ranged.place
        FROM generate_series(0, 9) AS p (n)
        CROSS JOIN LATERAL (
            SELECT j.ctid AS place FROM {jobs} AS j
            WHERE {claimable} AND j.queue = d.name AND j.priority = p.n AND j.due_at <= d.now + d.ahead
              AND j.due_at > CASE WHEN d.ahead > 0 THEN d.now ELSE coalesce((
                  SELECT f.due_at FROM {each floors: queue text, priority int, due_at int} AS f
                  WHERE f.queue = d.name AND f.priority = p.n
              ), 0) - 1 END
              AND (d.unstarted = 0 OR (j.on_crash = 'retry' AND j.crashes = 0))
              AND (d.ahead = 0 OR j.unique_key IS NULL)
              AND j.task = ANY (d.tasks)
            ORDER BY j.due_at, j.id LIMIT d.most FOR UPDATE SKIP LOCKED
        ) AS ranged
        WHERE p.n < :below_priority::int
        LIMIT d.most
    ) AS taken
    LIMIT :limit
)
UPDATE {jobs} SET
    state = 'running', fence = fence + 1, claim_id = :claim_id, worker = :worker,
    started_at = CASE WHEN :unstarted::int = 0 THEN {now_once} END
WHERE ctid = ANY (ARRAY(SELECT place FROM picked))
RETURNING {claim_columns}

-- name: at_gates
-- Choose due jobs at gates that are locked, from each range of the index as many as may pass.
SELECT taken.priority, taken.due_at, taken.id, taken.queue, taken.gate
FROM {each rows: task text, gate text, queue text, priority int, most int} AS r
CROSS JOIN LATERAL (
    SELECT j.priority, j.due_at, j.id, j.queue, j.gate
    FROM {jobs} AS j
    WHERE {at_gate} AND j.task = r.task AND j.gate = r.gate AND j.queue = r.queue AND j.priority = r.priority
      AND j.due_at <= {now}
    ORDER BY j.due_at, j.id LIMIT r.most FOR UPDATE SKIP LOCKED
) AS taken
WHERE {worker_lives}

-- name: in_queues
-- Choose due jobs without a gate in limited queues that are locked.
WITH demand AS MATERIALIZED (
    SELECT r.queue, r.most, {now} AS now, ARRAY(SELECT t.name FROM {each tasks: name text} AS t) AS tasks
    FROM {each rows: queue text, most int} AS r
    WHERE {worker_lives}
)
SELECT taken.priority, taken.due_at, taken.id, taken.queue, taken.gate
FROM demand AS d CROSS JOIN LATERAL (
    SELECT ranged.priority, ranged.due_at, ranged.id, ranged.queue, ranged.gate
    FROM generate_series(0, 9) AS p (n)
    CROSS JOIN LATERAL (
        SELECT j.priority, j.due_at, j.id, j.queue, j.gate FROM {jobs} AS j
        WHERE {claimable} AND j.queue = d.queue AND j.priority = p.n AND j.due_at <= d.now AND j.task = ANY (d.tasks)
        ORDER BY j.due_at, j.id LIMIT d.most FOR UPDATE SKIP LOCKED
    ) AS ranged
    LIMIT d.most
) AS taken
