-- Enqueue.

-- fragment: one
-- A job that asks for nothing special, without the cost of a batch.
(id, payload, due_at, task, queue, priority, on_crash, retries, timeout, state, created_at)
VALUES (:id, :payload, coalesce(CAST(:due_at AS bigint), {now} + :delay), :task, :queue, :priority, :on_crash,
        CAST(:retries AS bigint), CAST(:timeout AS bigint), 'pending', {stored_at})

-- fragment: alike
-- Jobs that ask for nothing special and differ only in id, arguments and due time; the rest comes once.
(id, payload, due_at, task, queue, priority, on_crash, retries, timeout, state, created_at)
SELECT r.id, r.payload, coalesce(r.due_at, {now_once} + :delay), CAST(:task AS text), CAST(:queue AS text),
       CAST(:priority AS bigint), CAST(:on_crash AS text), CAST(:retries AS bigint), CAST(:timeout AS bigint),
       'pending', {stored_at_once}
FROM {each rows: id text, payload text, due_at int} AS r
WHERE true

-- name: enqueue_one
-- Store such a job, unless it is stored already.
INSERT INTO {jobs} {one}
ON CONFLICT (id) DO NOTHING

-- name: enqueue_alike
-- Store such jobs, but for those that are stored already.
INSERT INTO {jobs} {alike}
ON CONFLICT (id) DO NOTHING

-- name: enqueue_one_fresh
-- Store such a job if it is new; the database refuses it if it is stored already.
INSERT INTO {jobs} {one}

-- name: enqueue_alike_fresh
-- Store such jobs if all are new; the database refuses them all if one is stored already. To look for none of them first
-- makes bulk a quarter faster on PostgreSQL.
INSERT INTO {jobs} {alike}

-- fragment: new_job
-- A job with all that it may ask for.
id text, task text, payload text, due_at int, delay int, queue text, priority int, on_crash text, retries int, timeout int, schedule text, occurrence int, state text, reason text, span_first int, span_count int, unique_key text, keep_key int, key_period int, parent text, tags text, expires_at int, callbacks text, expires int, result_ttl int, failure_ttl int, gate text, headers text, secret text

-- name: enqueue
-- Store jobs of any kind; what is stored already, by id, key or occurrence, stays as it is.
INSERT INTO {jobs} (id, task, payload, due_at, queue, priority, on_crash, retries, timeout, schedule,
                    occurrence, state, reason, span_first, span_count, created_at, finished_at,
                    unique_key, keep_key, key_until, parent, tags, expires_at, callbacks, result_ttl,
                    failure_ttl, gate, headers, secret)
SELECT r.id, r.task, r.payload, coalesce(r.due_at, {now_once} + r.delay), r.queue, r.priority, r.on_crash,
       r.retries, r.timeout, r.schedule, r.occurrence, r.state, r.reason, r.span_first, r.span_count, {stored_at_once},
       CASE WHEN r.state = 'pending' THEN NULL ELSE {now_once} END,
       r.unique_key, r.keep_key, {now_once} + r.key_period, r.parent, r.tags,
       coalesce(r.expires_at, coalesce(r.due_at, {now_once} + r.delay) + r.expires), r.callbacks, r.result_ttl,
       r.failure_ttl, r.gate, r.headers, r.secret
FROM {each rows: new_job} AS r
WHERE true
ON CONFLICT DO NOTHING

-- name: occurrence_ids
-- Find the jobs that stand for given occurrences, also those that a caller's transaction has not seen yet.
SELECT j.schedule, j.occurrence, j.id
FROM {each rows: schedule text, occurrence int} AS r
JOIN {jobs} AS j ON j.schedule = r.schedule AND j.occurrence = r.occurrence AND (j.occurrence IS NULL) IS FALSE
{current}
