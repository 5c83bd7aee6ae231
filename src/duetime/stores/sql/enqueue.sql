-- The hot path: enqueue, claim, settle.

-- fragment: one
-- What a job is that asks for nothing special.
(id, payload, due_at, task, queue, priority, on_crash, retries, timeout, state, created_at)
VALUES (:id, :payload, coalesce(CAST(:due_at AS bigint), {now} + :delay), :task, :queue, :priority, :on_crash,
        CAST(:retries AS bigint), CAST(:timeout AS bigint), 'pending', {stored_at})

-- name: enqueue_one
-- Store a job that asks for nothing special, without the cost of a batch.
INSERT INTO {jobs} {one}
ON CONFLICT DO NOTHING

-- name: enqueue_one_fresh
-- The same for a job that should be new; one that is stored already, the database refuses.
INSERT INTO {jobs} {one}

-- fragment: alike
-- What jobs of one kind have in common comes once.
(id, payload, due_at, task, queue, priority, on_crash, retries, timeout, state, created_at)
SELECT r.id, r.payload, coalesce(r.due_at, {now_once} + :delay), CAST(:task AS text), CAST(:queue AS text),
       CAST(:priority AS bigint), CAST(:on_crash AS text), CAST(:retries AS bigint), CAST(:timeout AS bigint),
       'pending', {stored_at_once}

-- fragment: at_one_time
-- Jobs that fall due together, from an object of their arguments by id: to read rows of a batch takes longer.
FROM (SELECT key AS id, value AS payload, CAST(:due_at AS bigint) AS due_at FROM {pairs}) AS r
WHERE true

-- fragment: at_any_time
-- Jobs with due times of their own.
FROM {each rows: id text, payload text, due_at int} AS r
WHERE true

-- name: enqueue_alike
-- The same for jobs of one kind that fall due together.
INSERT INTO {jobs} {alike}
{at_one_time}
ON CONFLICT DO NOTHING

-- name: enqueue_fresh
-- The same for jobs that should all be new; where one is stored already, the database refuses them all.
INSERT INTO {jobs} {alike}
{at_one_time}

-- name: enqueue_dated
-- The same for jobs of one kind that fall due one by one.
INSERT INTO {jobs} {alike}
{at_any_time}
ON CONFLICT DO NOTHING

-- name: enqueue_dated_fresh
-- The same for such jobs that should all be new.
INSERT INTO {jobs} {alike}
{at_any_time}

-- name: enqueue
-- Store jobs of any kind; what is stored already, by id or by occurrence, stays as it is.
INSERT INTO {jobs} (id, task, payload, due_at, queue, priority, on_crash, retries, timeout, schedule,
                    occurrence, state, reason, span_first, span_count, created_at, finished_at)
SELECT r.id, r.task, r.payload, coalesce(r.due_at, {now_once} + r.delay), r.queue, r.priority, r.on_crash,
       r.retries, r.timeout, r.schedule, r.occurrence, r.state, r.reason, r.span_first, r.span_count, {stored_at_once},
       CASE WHEN r.state = 'pending' THEN NULL ELSE {now_once} END
FROM {each rows: id text, task text, payload text, due_at int, delay int, queue text, priority int,
      on_crash text, retries int, timeout int, schedule text, occurrence int, state text, reason text,
      span_first int, span_count int} AS r
WHERE true
ON CONFLICT DO NOTHING

-- name: enqueue_rich
-- The same for jobs of which some ask for more than to run.
INSERT INTO {jobs} (id, task, payload, due_at, queue, priority, on_crash, retries, timeout, schedule,
                    occurrence, state, reason, span_first, span_count, created_at, finished_at,
                    unique_key, keep_key, key_until, parent, tags, expires_at, callbacks, result_ttl,
                    failure_ttl, gate)
SELECT r.id, r.task, r.payload, coalesce(r.due_at, {now_once} + r.delay), r.queue, r.priority, r.on_crash,
       r.retries, r.timeout, r.schedule, r.occurrence, r.state, r.reason, r.span_first, r.span_count, {stored_at_once},
       CASE WHEN r.state = 'pending' THEN NULL ELSE {now_once} END,
       r.unique_key, r.keep_key, {now_once} + r.key_period, r.parent, r.tags,
       coalesce(r.expires_at, coalesce(r.due_at, {now_once} + r.delay) + r.expires), r.callbacks, r.result_ttl,
       r.failure_ttl, r.gate
FROM {each rows: id text, task text, payload text, due_at int, delay int, queue text, priority int,
      on_crash text, retries int, timeout int, schedule text, occurrence int, state text, reason text,
      span_first int, span_count int, unique_key text, keep_key int, key_period int, parent text, tags text,
      expires_at int, callbacks text, expires int, result_ttl int, failure_ttl int, gate text} AS r
WHERE true
ON CONFLICT DO NOTHING

-- name: occurrence_ids
-- Find the jobs that stand for given occurrences, also those that a caller's transaction has not seen yet.
SELECT j.schedule, j.occurrence, j.id
FROM {each rows: schedule text, occurrence int} AS r
JOIN {jobs} AS j ON j.schedule = r.schedule AND j.occurrence = r.occurrence AND (j.occurrence IS NULL) IS FALSE
{current}

-- fragment: first_of
-- Locks the first jobs of one queue: an ordered range of the index for each priority, one behind the other. The list of
-- priorities and literals instead of columns of a batch insist on that.
{claimable} AND j.priority IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) AND j.due_at <= {now} + :ahead
AND {known_task}
AND EXISTS (SELECT 1 FROM {workers} AS w WHERE w.id = :worker AND w.state = 'alive')

-- fragment: holdable
-- True for what may be claimed by a worker that does not start it at once; before it is due, only what no request under
-- its key can replace.
(:unstarted = 0 OR (j.on_crash = 'retry' AND j.crashes = 0)) AND (:ahead = 0 OR j.unique_key IS NULL)

-- name: claim
-- Choose jobs of one queue, for `take`, and hand them over packed in one row.
SELECT coalesce(json_arrayagg(json_array(
           j.id, j.fence + 1, :claim_id, j.task, j.payload, j.queue, j.priority, j.due_at, {now}, j.failures, j.crashes,
           j.blames, j.on_crash, j.retries, j.timeout, j.schedule, j.occurrence, j.cancel_requested_at, j.unique_key,
           j.tags, j.parent, j.callbacks, j.expires_at, j.result_ttl, j.failure_ttl)), '[]'),
       coalesce(json_arrayagg(json_array(j.id)), '[]')
FROM (
    SELECT * FROM {jobs} AS j {index claim}
    WHERE j.queue = json_value(:queues, '$[0][0]') AND {first_of} AND j.priority < :below_priority
      AND j.due_at > CASE WHEN :ahead = 0 THEN -1 ELSE {now} END
      AND {holdable}
      AND NOT EXISTS (SELECT 1 FROM {queues} AS p WHERE p.name = json_value(:queues, '$[0][0]')
                      AND (p.paused_at IS NOT NULL OR p.most IS NOT NULL OR p.rate_count IS NOT NULL))
    ORDER BY j.priority, j.due_at, j.id LIMIT :limit
    {skip_locked j}
) AS j

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

-- name: holders
-- Lock claims that are about to go back, and tell what their attempts must remember.
SELECT {jobs}.id, {jobs}.worker, {jobs}.due_at
FROM {each rows: id text, fence int, claim_id text} AS r
JOIN {jobs} ON {named}
WHERE {held}
ORDER BY r.id
{locking}

-- name: settle
-- Write what runs came to. A job that goes back while its cancellation is requested is cancelled instead.
UPDATE {jobs} SET
    state = CASE WHEN r.state = 'pending' AND cancel_requested_at IS NOT NULL THEN 'cancelled' ELSE r.state END,
    started_at = CASE WHEN r.state = 'pending' AND cancel_requested_at IS NULL THEN NULL ELSE r.started_at END,
    finished_at = CASE WHEN r.state = 'pending' AND cancel_requested_at IS NOT NULL THEN {now} ELSE r.finished_at END,
    reason = CASE WHEN r.state IN ('pending', 'cancelled') AND cancel_requested_at IS NOT NULL
                  THEN cancel_reason ELSE r.reason END,
    worker = CASE WHEN r.state = 'pending' AND cancel_requested_at IS NULL THEN NULL ELSE coalesce(r.worker, {jobs}.worker) END,
    due_at = coalesce(r.due_at, {jobs}.due_at),
    failures = r.failures, crashes = r.crashes, blames = r.blames,
    result = r.result, result_error = r.result_error, error = r.error, traceback = r.traceback,
    progress = CASE WHEN r.state = 'pending' AND cancel_requested_at IS NULL THEN NULL ELSE progress END,
    progress_note = CASE WHEN r.state = 'pending' AND cancel_requested_at IS NULL THEN NULL ELSE progress_note END
FROM {each rows: id text, fence int, claim_id text, state text, started_at int, finished_at int, due_at int,
      failures int, crashes int, blames int, worker text, result text, result_error text, error text, traceback text,
      reason text} AS r
WHERE {named} AND {held}
RETURNING {jobs}.id, {jobs}.fence, {jobs}.claim_id

-- name: succeed
-- Write runs that came to nothing but success: the same as `settle` with half the values to read for each job,
-- what most of them share only once, and only their number for an answer.
UPDATE {jobs} SET
    state = 'succeeded', started_at = r.started_at, finished_at = r.finished_at,
    result = r.result, result_error = r.result_error, error = NULL, traceback = NULL, reason = NULL
FROM {successes} AS r
WHERE {named} AND {held}

-- name: settled_before
-- Find the claims that had already been settled, when an answer was lost.
SELECT r.id, r.fence, r.claim_id
FROM {each rows: id text, fence int, claim_id text} AS r
JOIN {jobs} ON {named} AND {jobs}.fence = r.fence AND {jobs}.claim_id = r.claim_id
WHERE {jobs}.state <> 'running'

-- name: add_attempts
-- Keep the tries that ended without ending their job.
INSERT INTO {attempts} (job_id, fence, claim_id, worker, due_at, started_at, ended_at, outcome, error, traceback)
SELECT r.job_id, r.fence, r.claim_id, r.worker, r.due_at, r.started_at, coalesce(r.ended_at, {now}), r.outcome,
       r.error, r.traceback
FROM {each rows: job_id text, fence int, claim_id text, worker text, due_at int, started_at int, ended_at int,
      outcome text, error text, traceback text} AS r
WHERE true
ON CONFLICT DO NOTHING

-- name: trim_attempts
-- Forget tries of long ago that came to nothing but a later due time.
DELETE FROM {attempts} WHERE outcome = 'snoozed' AND (job_id, fence) IN (
    SELECT a.job_id, a.fence FROM {each rows: job_id text, fence int} AS r
    JOIN {attempts} AS a ON a.job_id = r.job_id AND a.fence <= r.fence
)

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
