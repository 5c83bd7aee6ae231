-- Limits over all workers.

-- fragment: limits_in_use
-- Whether a queue is limited or a job waits at a gate. ORDER BY and LIMIT keep it a probe, whatever the statistics say.
(EXISTS (SELECT 1 FROM {queues} AS lq WHERE lq.most IS NOT NULL OR lq.rate_count IS NOT NULL)
 OR coalesce((SELECT j.due_at FROM {jobs} AS j {index gated_due}
              WHERE {at_gate} AND j.due_at >= 0 ORDER BY j.due_at LIMIT 1), -1) >= 0)

-- name: limited_queues
WITH {priorities}
SELECT q.name, q.most, q.rate_count, q.rate_period, q.starts,
       (SELECT count(*) FROM {jobs} AS j WHERE j.state = 'running' AND j.queue = q.name), {now},
       (SELECT min((
            SELECT j.due_at FROM {jobs} AS j {index claim}
            WHERE {claimable} AND j.queue = q.name AND j.priority = p.n AND {known_task}
            ORDER BY j.due_at, j.id LIMIT 1
        )) FROM priorities AS p)
FROM {each queues: name text} AS d JOIN {queues} AS q ON q.name = d.name
WHERE q.paused_at IS NULL AND (q.most IS NOT NULL OR q.rate_count IS NOT NULL)

-- fragment: running_of
-- What runs of a schedule, by the index of what it has made. That it runs is hidden from the planner, which would look
-- through all that runs for it.
j.schedule IS NOT NULL AND j.state IN ('pending', 'running') AND CASE WHEN j.state = 'running' THEN true ELSE false END

-- fragment: next_range
-- Joins a position in the index of gates with the first job of the range behind it.
-- For SQLite the end of a range is given in full, since it starts to look at what is equal, and its bounds go through
-- coalesce: with the affinity of a column it would use no more than the first of them.
JOIN {jobs} AS j ON j.id = (
    SELECT j.id FROM {jobs} AS j {index gated}
    WHERE {at_gate} AND j.task = w.task
      AND (j.gate, j.queue, j.priority, j.due_at)
        > (coalesce(w.gate, ''), coalesce(w.queue, ''), coalesce(w.priority, 0), 9223372036854775807)
    ORDER BY j.gate, j.queue, j.priority, j.due_at, j.id LIMIT 1
)

-- fragment: walk
-- From range to range of the index of gates.
walk (task, gate, queue, priority, due_at, schedule, step) AS (
    SELECT j.task, j.gate, j.queue, j.priority, j.due_at, j.schedule, 1
    FROM {each tasks: task text, gate text, queue text, priority int} AS w {next_range}
    WHERE (SELECT count(*) FROM latest) = :latest
    UNION ALL
    SELECT j.task, j.gate, j.queue, j.priority, j.due_at, j.schedule, w.step + 1
    FROM walk AS w {next_range}
    WHERE w.step < :steps
)

-- name: waiting_gates
-- Find gates where due jobs wait. The walk goes from each range of the index (a gate, a queue, a priority) to the
-- next, a probe each, however many jobs are in it, and stops after `steps`. It also finds the gates of the jobs
-- that fell due last, so that a new job is found at once, even behind very many gates. Where these are all that is due,
-- there is no walk: it would pass by the gates of the future, too.
WITH RECURSIVE {walk}, latest AS (
    SELECT j.task, j.gate, j.queue, j.priority, j.due_at, j.schedule, 0 AS step
    FROM {jobs} AS j {index gated_due}
    WHERE {at_gate} AND j.due_at <= {now} AND j.due_at >= 0 ORDER BY j.due_at DESC LIMIT :latest
), found AS (
    SELECT w.*, w.due_at <= {now}
           AND w.queue IN (SELECT d.name FROM {each queues: name text} AS d)
           AND NOT EXISTS (SELECT 1 FROM {queues} AS q WHERE q.name = w.queue AND q.paused_at IS NOT NULL) AS ready
    FROM (SELECT * FROM walk UNION ALL SELECT * FROM latest) AS w
)
SELECT f.task, f.gate, f.queue, f.priority, f.due_at, f.step, f.ready, g.name, g.starts,
       CASE WHEN f.ready THEN (SELECT count(*) FROM {jobs} AS j WHERE j.state = 'running' AND j.gate = f.gate) END,
       CASE WHEN f.ready AND f.schedule IS NOT NULL THEN (
           SELECT count(*) FROM {jobs} AS j {index history} WHERE {running_of} AND j.schedule = f.schedule
       ) END,
       {now}
FROM found AS f LEFT JOIN {gates} AS g ON g.name = f.gate
WHERE f.ready OR f.step = :steps

-- name: add_gates
INSERT INTO {gates} (name, task, most, rate_count, rate_period, seen_at)
SELECT r.name, r.task, r.most, r.rate_count, r.rate_period, {now}
FROM {each rows: name text, task text, most int, rate_count int, rate_period int} AS r
WHERE true ORDER BY r.name ON CONFLICT DO NOTHING

-- name: lock_gates
-- Lock gates, the first of the list that are not locked; the worker that has one locked is the only one that counts there.
SELECT g.name, g.most, g.rate_count, g.rate_period, g.starts
FROM {each rows: name text, place int} AS r JOIN {gates} AS g ON g.name = r.name
ORDER BY r.place LIMIT :limit {skip_locked g}

-- name: lock_queues
SELECT q.name, q.most, q.rate_count, q.rate_period, q.starts
FROM {each rows: name text} AS r JOIN {queues} AS q ON q.name = r.name
WHERE q.paused_at IS NULL AND (q.most IS NOT NULL OR q.rate_count IS NOT NULL)
{skip_locked q}

-- name: running_under
-- Count what runs under limits. A statement of its own: it sees what was committed before the locks were taken. For a gate
-- of a schedule, what was made before the schedule took turns, or for another task, has no such gate and counts, too.
SELECT 'gate', r.name,
       CASE WHEN r.schedule IS NULL THEN (SELECT count(*) FROM {jobs} AS j WHERE j.state = 'running' AND j.gate = r.name)
            ELSE (SELECT count(*) FROM {jobs} AS j {index history} WHERE {running_of} AND j.schedule = r.schedule) END, {now}
FROM {each gates: name text, schedule text} AS r
UNION ALL
SELECT 'queue', r.name, (SELECT count(*) FROM {jobs} AS j WHERE j.state = 'running' AND j.queue = r.name), {now}
FROM {each queues: name text} AS r

-- name: at_gates
-- Choose due jobs at a gate that is locked, from one range of the index, in its order.
SELECT j.priority, j.due_at, j.id, j.queue, j.gate
FROM {each rows: task text, gate text, queue text, priority int} AS r
CROSS JOIN {jobs} AS j {index gated}
WHERE {at_gate} AND j.task = r.task AND j.gate = r.gate AND j.queue = r.queue AND j.priority = r.priority
  AND j.due_at <= {now} AND {worker_lives}
LIMIT :most {skip_locked j}

-- name: in_queues
-- Choose due jobs without a gate in a limited queue that is locked, as `claim` does.
WITH {priorities}
SELECT j.priority, j.due_at, j.id, j.queue, j.gate
FROM {each rows: queue text} AS r CROSS JOIN priorities AS p CROSS JOIN {jobs} AS j {index claim}
WHERE {claimable} AND j.queue = r.queue AND j.priority = p.n AND j.due_at <= {now} AND {known_task}
  AND {worker_lives}
LIMIT :most

-- name: take_limited
UPDATE {jobs} SET
    state = 'running', fence = {jobs}.fence + 1, claim_id = :claim_id, worker = :worker, started_at = {now}
FROM {each rows: id text} AS r
WHERE {named}
RETURNING {claim_columns}

-- name: note_gates
-- Remember starts at gates, and the limits they were judged by.
UPDATE {gates} SET most = r.most, rate_count = r.rate_count, rate_period = r.rate_period, starts = r.starts,
                   seen_at = {now}
FROM {each rows: name text, most int, rate_count int, rate_period int, starts text} AS r
WHERE {gates}.name = r.name

-- name: note_queues
UPDATE {queues} SET starts = r.starts
FROM {each rows: name text, starts text} AS r
WHERE {queues}.name = r.name

-- fragment: idle_gate
-- True for a gate that no job is at, and whose window is over.
{gates}.seen_at + coalesce({gates}.rate_period, 0) < {now}
AND NOT EXISTS (SELECT 1 FROM {jobs} AS j WHERE j.state = 'running' AND j.gate = {gates}.name)
AND NOT EXISTS (SELECT 1 FROM {jobs} AS j {index gated}
                WHERE {at_gate} AND j.task = {gates}.task AND j.gate = {gates}.name)

-- name: idle_gates
SELECT {gates}.name, {idle_gate} FROM {gates} WHERE {gates}.name > :after ORDER BY {gates}.name LIMIT :stretch

-- name: prune_gates
-- Forget gates, if they are still idle; the next job makes them anew.
DELETE FROM {gates} WHERE name IN (SELECT r.name FROM {each rows: name text} AS r) AND {idle_gate}
RETURNING name

-- name: set_queue_limit
-- Limit a queue, or no longer; starts that were counted still count.
INSERT INTO {queues} (name, most, rate_count, rate_period) VALUES (:queue, :most, :rate_count, :rate_period)
ON CONFLICT (name) DO UPDATE SET most = excluded.most, rate_count = excluded.rate_count,
                                 rate_period = excluded.rate_period

-- name: limits_on
SELECT 'task', g.name, g.most, g.rate_count, g.rate_period, g.starts,
       CASE WHEN CAST(:schedule AS text) IS NULL
            THEN (SELECT count(*) FROM {jobs} AS j WHERE j.state = 'running' AND j.gate = g.name)
            ELSE (SELECT count(*) FROM {jobs} AS j {index history} WHERE {running_of} AND j.schedule = :schedule) END
FROM {gates} AS g WHERE g.name = CAST(:gate AS text)
UNION ALL
SELECT 'queue', q.name, q.most, q.rate_count, q.rate_period, q.starts,
       (SELECT count(*) FROM {jobs} AS j WHERE j.state = 'running' AND j.queue = q.name)
FROM {queues} AS q WHERE q.name = :queue AND (q.most IS NOT NULL OR q.rate_count IS NOT NULL)
