-- Every statement of the SQL stores, in the words all databases share.
--
-- `{jobs}` and its like are table names. `{each rows: id text, fence int}` is a batch: one JSON parameter,
-- an array of arrays, read as a table with these columns. `{now}` is the store's clock. A dialect replaces a
-- whole statement only where its shape differs.

-- fragment: claim_columns
-- What a worker needs to run a job. No IS NULL here: SQLite 3.40 answers it wrongly in RETURNING.
{jobs}.id, {jobs}.fence, {jobs}.claim_id, {jobs}.task, {jobs}.payload, {jobs}.queue, {jobs}.priority,
{jobs}.due_at, {now}, {jobs}.failures, {jobs}.crashes, {jobs}.blames, {jobs}.on_crash, {jobs}.retries,
{jobs}.timeout, {jobs}.schedule, {jobs}.occurrence, {jobs}.cancel_requested_at, {jobs}.unique_key, {jobs}.tags,
{jobs}.parent, {jobs}.callbacks, {jobs}.expires_at, {jobs}.result_ttl, {jobs}.failure_ttl, {jobs}.gate

-- fragment: job_columns
-- A whole job, for people.
id, task, payload, queue, priority, state, due_at, created_at, started_at, finished_at, worker, fence,
failures, crashes, blames, on_crash, retries, timeout, result, result_error, error, traceback, reason,
cancel_requested_at, schedule, occurrence, span_first, span_count, unique_key, tags, parent, callbacks,
expires_at, result_ttl, failure_ttl, gate, progress, progress_note

-- fragment: registry
-- Where a job is, as `model.registries.registry_of` tells it.
CASE WHEN state = 'succeeded' THEN 'finished' WHEN state = 'skipped' THEN 'skipped'
     WHEN state = 'failed' OR (state = 'cancelled' AND started_at IS NOT NULL) THEN 'failed'
     WHEN state = 'cancelled' THEN 'cancelled'
     WHEN state = 'running' AND started_at IS NOT NULL THEN 'active'
     WHEN state = 'pending' AND due_at <= {now} THEN 'queued' ELSE 'scheduled' END

-- fragment: on_page
-- True for a job that is not too new for the page, nor too old for what is asked for: ids rise with time.
id < CAST(:before AS text) AND id >= CAST(:from_id AS text)

-- fragment: wanted
-- True for a job of the list that was asked for. It is hidden from the planner, which would take so many
-- conditions for a sign that next to nothing is found.
CASE WHEN (CAST(:since AS bigint) IS NULL OR created_at >= CAST(:since AS bigint))
      AND (CAST(:task AS text) IS NULL OR task = CAST(:task AS text))
      AND (CAST(:state AS text) IS NULL OR state = CAST(:state AS text))
      AND (CAST(:queue AS text) IS NULL OR queue = CAST(:queue AS text))
      AND (CAST(:schedule AS text) IS NULL OR schedule = CAST(:schedule AS text))
      AND (CAST(:key AS text) IS NULL OR unique_key = CAST(:key AS text))
      AND (CAST(:tag AS text) IS NULL OR replace(tags, CAST(:tag AS text), '') <> tags)
      AND (CAST(:registry AS text) IS NULL OR CAST(:registry AS text) = {registry})
THEN true ELSE false END

-- fragment: schedule_columns
-- A whole schedule, with the number of its jobs that have not ended.
s.name, s.task, s.payload, s.trigger_spec, s.queue, s.priority, s.on_crash, s.retries, s.timeout, s.overlap,
s.misfire_window, s.owner, s.paused_at, s.paused_reason, s.fired_through, s.next_at, s.rev, s.created_at,
s.updated_at,
(SELECT count(*) FROM {jobs} AS j WHERE j.schedule = s.name AND (j.state = 'pending' OR j.state = 'running')),
s.options

-- fragment: held
-- True for a row whose claim still holds. The state is hidden from the planner: with statistics taken while
-- nothing ran it would believe that no row matches, and read the batch once per row.
{jobs}.fence = r.fence AND {jobs}.claim_id = r.claim_id
AND CASE WHEN {jobs}.state = 'running' THEN true ELSE false END

-- fragment: claimable
-- What the claim index holds.
j.state = 'pending' AND j.waits = 0 AND j.gate IS NULL

-- fragment: command_columns
-- A whole command.
id, worker, kind, body, created_at, taken_at, done_at, outcome, dropped

-- fragment: commands_wait
-- Whether a worker has been told something that it has not answered; costs no statement of its own.
EXISTS (SELECT 1 FROM {commands} AS c WHERE c.worker = :worker AND c.done_at IS NULL)

-- fragment: limits_in_use
-- Whether a queue is limited or a job waits at a gate. ORDER BY and LIMIT keep it a probe whatever the planner learnt.
(EXISTS (SELECT 1 FROM {queues} AS lq WHERE lq.most IS NOT NULL OR lq.rate_count IS NOT NULL)
 OR coalesce((SELECT lj.due_at FROM {jobs} AS lj {index gated_due}
              WHERE lj.state = 'pending' AND lj.waits = 0 AND lj.gate IS NOT NULL
              ORDER BY lj.due_at LIMIT 1), -1) >= 0)

-- name: clock
-- Tell the store's time.
SELECT {now}

-- name: enqueue
-- Store jobs; what is stored already, by id or by occurrence, stays as it is.
INSERT INTO {jobs} (id, task, payload, due_at, queue, priority, on_crash, retries, timeout, schedule,
                    occurrence, state, reason, span_first, span_count, created_at, finished_at)
SELECT r.id, r.task, r.payload, coalesce(r.due_at, {now} + r.delay), r.queue, r.priority, r.on_crash,
       r.retries, r.timeout, r.schedule, r.occurrence, r.state, r.reason, r.span_first, r.span_count, {now},
       CASE WHEN r.state = 'pending' THEN NULL ELSE {now} END
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
SELECT r.id, r.task, r.payload, coalesce(r.due_at, {now} + r.delay), r.queue, r.priority, r.on_crash,
       r.retries, r.timeout, r.schedule, r.occurrence, r.state, r.reason, r.span_first, r.span_count, {now},
       CASE WHEN r.state = 'pending' THEN NULL ELSE {now} END,
       r.unique_key, r.keep_key, {now} + r.key_period, r.parent, r.tags,
       coalesce(r.expires_at, coalesce(r.due_at, {now} + r.delay) + r.expires), r.callbacks, r.result_ttl,
       r.failure_ttl, r.gate
FROM {each rows: id text, task text, payload text, due_at int, delay int, queue text, priority int,
      on_crash text, retries int, timeout int, schedule text, occurrence int, state text, reason text,
      span_first int, span_count int, unique_key text, keep_key int, key_period int, parent text, tags text,
      expires_at int, callbacks text, expires int, result_ttl int, failure_ttl int, gate text} AS r
WHERE true
ON CONFLICT DO NOTHING

-- name: key_holders
-- Tell the time, which requests are stored, and which jobs have their keys.
SELECT {now}, r.id, j.id, j.state, j.payload, j.finished_at, j.keep_key, j.key_until
FROM {each rows: id text, task text, unique_key text} AS r
JOIN {jobs} AS j ON j.task = r.task AND j.unique_key = r.unique_key
WHERE j.unique_key IS NOT NULL AND j.key_held = 1
  AND (j.state = 'pending' OR j.state = 'running' OR j.keep_key IS NOT NULL OR j.key_until IS NOT NULL)
UNION ALL
SELECT {now}, r.id, j.id, j.state, j.payload, j.finished_at, j.keep_key, j.key_until
FROM {each rows: id text, task text, unique_key text} AS r
JOIN {jobs} AS j ON j.id = r.id

-- name: replace_keyed
-- Turn jobs that wait under a key into others; they keep their ids and forget how often they were tried.
UPDATE {jobs} SET
    payload = r.payload, due_at = coalesce(r.due_at, {now} + r.delay), queue = r.queue, priority = r.priority,
    on_crash = r.on_crash, retries = r.retries, timeout = r.timeout, failures = 0, crashes = 0, blames = 0,
    error = NULL, traceback = NULL, reason = NULL, progress = NULL, progress_note = NULL,
    keep_key = r.keep_key, key_until = {now} + r.key_period, parent = r.parent, tags = r.tags,
    expires_at = coalesce(r.expires_at, coalesce(r.due_at, {now} + r.delay) + r.expires),
    callbacks = r.callbacks, result_ttl = r.result_ttl, failure_ttl = r.failure_ttl, gate = r.gate
FROM {each rows: id text, task text, payload text, due_at int, delay int, queue text, priority int,
      on_crash text, retries int, timeout int, schedule text, occurrence int, state text, reason text,
      span_first int, span_count int, unique_key text, keep_key int, key_period int, parent text, tags text,
      expires_at int, callbacks text, expires int, result_ttl int, failure_ttl int, gate text} AS r
WHERE {jobs}.id = r.id AND CASE WHEN {jobs}.state = 'pending' AND {jobs}.key_held = 1 THEN true ELSE false END
RETURNING {jobs}.id

-- name: free_keys
-- Take the keys from jobs, unless they have moved on since they were looked at.
UPDATE {jobs} SET key_held = 0
FROM {each rows: id text, state text} AS r
WHERE {jobs}.id = r.id AND {jobs}.key_held = 1 AND {jobs}.state = r.state

-- name: occurrence_ids
-- Find the jobs that stand for given occurrences.
SELECT j.schedule, j.occurrence, j.id
FROM {each rows: schedule text, occurrence int} AS r
JOIN {jobs} AS j ON j.schedule = r.schedule AND j.occurrence = r.occurrence

-- name: take
-- Mark jobs as claimed, where choosing them and marking them are two steps of one transaction.
UPDATE {jobs} SET
    state = 'running', fence = fence + 1, claim_id = :claim_id, worker = :worker,
    started_at = CASE WHEN :unstarted = 0 THEN {now} END
WHERE id IN (SELECT r.id FROM {each rows: id text} AS r)

-- name: claims_under
-- Look up what a claim had handed out, when its answer was lost.
SELECT {claim_columns} FROM {jobs} WHERE state = 'running' AND claim_id = :claim_id

-- name: mark_started
-- Record when claims taken ahead were started.
UPDATE {jobs} SET started_at = :started_at
FROM {each rows: id text, fence int, claim_id text} AS r
WHERE {jobs}.id = r.id AND {held}

-- name: holders
-- Lock claims that are about to go back, and tell what their attempts must remember.
SELECT {jobs}.id, {jobs}.worker, {jobs}.due_at
FROM {each rows: id text, fence int, claim_id text} AS r
JOIN {jobs} ON {jobs}.id = r.id
WHERE {held}
ORDER BY {jobs}.id
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
WHERE {jobs}.id = r.id AND {held}
RETURNING {jobs}.id, {jobs}.fence, {jobs}.claim_id

-- name: succeed
-- Write runs that came to nothing but success: the same as `settle` with half the values to read for each job,
-- and only their number for an answer.
UPDATE {jobs} SET
    state = 'succeeded', started_at = r.started_at, finished_at = r.finished_at,
    result = r.result, result_error = r.result_error, error = NULL, traceback = NULL, reason = NULL
FROM {each rows: id text, fence int, claim_id text, started_at int, finished_at int, result text,
      result_error text} AS r
WHERE {jobs}.id = r.id AND {held}

-- name: settled_before
-- Find the claims that had already been settled, when an answer was lost.
SELECT r.id, r.fence, r.claim_id
FROM {each rows: id text, fence int, claim_id text} AS r
JOIN {jobs} ON {jobs}.id = r.id AND {jobs}.fence = r.fence AND {jobs}.claim_id = r.claim_id
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

-- name: trim_logs
-- Forget what they have logged.
DELETE FROM {logs} WHERE (job_id, fence, line) IN (
    SELECT l.job_id, l.fence, l.line FROM {each rows: job_id text, fence int} AS r
    JOIN {logs} AS l ON l.job_id = r.job_id AND l.fence <= r.fence
)

-- name: note_progress
-- Tell how far runs are.
UPDATE {jobs} SET progress = r.fraction, progress_note = r.note
FROM {each rows: id text, fence int, claim_id text, fraction real, note text} AS r
WHERE {jobs}.id = r.id AND {held}

-- name: add_logs
-- Keep what runs have logged. A claim that has just been settled is still its own: its last part comes then.
INSERT INTO {logs} (job_id, fence, line, attempt, text)
SELECT r.job_id, r.fence, r.line, r.attempt, r.text
FROM {each rows: job_id text, fence int, claim_id text, attempt int, line int, text text} AS r
JOIN {jobs} ON {jobs}.id = r.job_id AND {jobs}.fence = r.fence AND {jobs}.claim_id = r.claim_id
WHERE true
ON CONFLICT DO NOTHING

-- name: drop_logs
-- Make room in logs that have grown too long.
DELETE FROM {logs} WHERE (job_id, fence, line) IN (
    SELECT l.job_id, l.fence, l.line
    FROM {each rows: job_id text, fence int, claim_id text, first int, past int} AS r
    JOIN {jobs} ON {jobs}.id = r.job_id AND {jobs}.fence = r.fence AND {jobs}.claim_id = r.claim_id
    JOIN {logs} AS l ON l.job_id = r.job_id AND l.fence = r.fence AND l.line >= r.first AND l.line < r.past
)

-- name: next_due
-- Tell when the next job falls due: one probe of the index per queue and priority, however many jobs wait. Of what
-- is limited only the future counts: whether the rest may start is for `claim_limited` to tell.
WITH priorities (n) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))
SELECT {now}, min(CASE WHEN first.after < 0 THEN first.due_at END),
       min(CASE WHEN first.after >= 0 THEN first.due_at END),
       (
           SELECT j.due_at FROM {jobs} AS j {index gated_due}
           WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NOT NULL AND j.due_at > {now}
             AND j.task IN (SELECT t.name FROM {each tasks: name text} AS t)
             AND j.queue IN (SELECT q.name FROM {each queues: name text} AS q)
           ORDER BY j.due_at LIMIT 1
       ),
       {limits_in_use}
FROM (
    SELECT q.after, (
        SELECT j.due_at FROM {jobs} AS j {index claim}
        WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NULL AND j.queue = q.name AND j.priority = p.n
          AND j.due_at > q.after
          AND j.task IN (SELECT t.name FROM {each tasks: name text} AS t)
        ORDER BY j.due_at, j.id LIMIT 1
    ) AS due_at
    FROM (
        SELECT d.name, CASE WHEN EXISTS (
            SELECT 1 FROM {queues} AS limited
            WHERE limited.name = d.name AND (limited.most IS NOT NULL OR limited.rate_count IS NOT NULL)
        ) THEN {now} ELSE -1 END AS after
        FROM {each queues: name text} AS d
        WHERE NOT EXISTS (SELECT 1 FROM {queues} AS paused WHERE paused.name = d.name AND paused.paused_at IS NOT NULL)
    ) AS q CROSS JOIN priorities AS p
) AS first

-- name: limited_queues
-- Tell how full the limited queues are, and when the first of their jobs without a gate is due.
WITH priorities (n) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))
SELECT q.name, q.most, q.rate_count, q.rate_period, q.starts,
       (SELECT count(*) FROM {jobs} AS j WHERE j.state = 'running' AND j.queue = q.name), {now},
       (SELECT min(first.due_at) FROM (
           SELECT (
               SELECT j.due_at FROM {jobs} AS j {index claim}
               WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NULL AND j.queue = q.name AND j.priority = p.n
                 AND j.task IN (SELECT t.name FROM {each tasks: name text} AS t)
               ORDER BY j.due_at, j.id LIMIT 1
           ) AS due_at
           FROM priorities AS p
       ) AS first)
FROM {each queues: name text} AS d
JOIN {queues} AS q ON q.name = d.name
WHERE q.paused_at IS NULL AND (q.most IS NOT NULL OR q.rate_count IS NOT NULL)

-- name: waiting_gates
-- Find gates where due jobs wait. The walk goes from each range of the index (a gate, a queue, a priority) to the
-- next, a probe each, however many jobs are in it, and stops after so many steps. Beside them, the gates of the jobs
-- that fell due last, so that a new job is found at once, even behind very many gates.
-- For SQLite the end of a range is given in full, since it starts to look at what is equal, and its bounds go through
-- coalesce: with the affinity of a column it would use no more than the first of them.
WITH RECURSIVE walk (task, gate, queue, priority, due_at, step) AS (
    SELECT j.task, j.gate, j.queue, j.priority, j.due_at, 1
    FROM {each tasks: name text, gate text, queue text, priority int} AS t
    JOIN {jobs} AS j ON j.id = (
        SELECT n.id FROM {jobs} AS n {index gated}
        WHERE n.state = 'pending' AND n.waits = 0 AND n.gate IS NOT NULL
          AND n.task = t.name
          AND (n.gate, n.queue, n.priority, n.due_at) > (t.gate, t.queue, t.priority, 9223372036854775807)
        ORDER BY n.gate, n.queue, n.priority, n.due_at, n.id LIMIT 1
    )
    UNION ALL
    SELECT j.task, j.gate, j.queue, j.priority, j.due_at, walk.step + 1
    FROM walk
    JOIN {jobs} AS j ON j.id = (
        SELECT n.id FROM {jobs} AS n {index gated}
        WHERE n.state = 'pending' AND n.waits = 0 AND n.gate IS NOT NULL
          AND n.task = walk.task
          AND (n.gate, n.queue, n.priority, n.due_at)
            > (coalesce(walk.gate, ''), coalesce(walk.queue, ''), coalesce(walk.priority, 0), 9223372036854775807)
        ORDER BY n.gate, n.queue, n.priority, n.due_at, n.id LIMIT 1
    )
    WHERE walk.step < :steps
), latest AS (
    SELECT j.task, j.gate, j.queue, j.priority, j.due_at, 0 AS step
    FROM {jobs} AS j {index gated_due}
    WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NOT NULL AND j.due_at <= {now}
    ORDER BY j.due_at DESC LIMIT :latest
), found AS (
    SELECT w.*, w.due_at <= {now}
           AND w.queue IN (SELECT d.name FROM {each queues: name text} AS d)
           AND NOT EXISTS (SELECT 1 FROM {queues} AS q WHERE q.name = w.queue AND q.paused_at IS NOT NULL) AS ready
    FROM (SELECT * FROM walk UNION ALL SELECT * FROM latest) AS w
)
SELECT f.task, f.gate, f.queue, f.priority, f.due_at, f.step, f.ready, g.name, g.starts,
       CASE WHEN f.ready THEN (SELECT count(*) FROM {jobs} AS j WHERE j.state = 'running' AND j.gate = f.gate) END,
       {now}
FROM found AS f
LEFT JOIN {gates} AS g ON g.name = f.gate
WHERE f.ready OR f.step = :steps

-- name: add_gates
-- Make the rows that claimers lock.
INSERT INTO {gates} (name, task, most, rate_count, rate_period, seen_at)
SELECT r.name, r.task, r.most, r.rate_count, r.rate_period, {now}
FROM {each rows: name text, task text, most int, rate_count int, rate_period int} AS r
WHERE true
ORDER BY r.name
ON CONFLICT DO NOTHING

-- name: lock_gates
-- Lock gates, the first of the list that nobody else has locked; whoever has one locked is the only one to count there.
SELECT g.name, g.most, g.rate_count, g.rate_period, g.starts
FROM {each rows: name text, place int} AS r
JOIN {gates} AS g ON g.name = r.name
ORDER BY r.place
LIMIT :limit
{skip_locked g}

-- name: lock_queues
-- Lock limited queues, those that nobody else has locked.
SELECT q.name, q.most, q.rate_count, q.rate_period, q.starts
FROM {each rows: name text} AS r
JOIN {queues} AS q ON q.name = r.name
WHERE q.paused_at IS NULL AND (q.most IS NOT NULL OR q.rate_count IS NOT NULL)
{skip_locked q}

-- name: running_under
-- Count what runs under limits. A statement of its own: it sees what was committed before the locks were taken.
SELECT 'gate', r.name, (SELECT count(*) FROM {jobs} AS j WHERE j.state = 'running' AND j.gate = r.name), {now}
FROM {each gates: name text} AS r
UNION ALL
SELECT 'queue', r.name, (SELECT count(*) FROM {jobs} AS j WHERE j.state = 'running' AND j.queue = r.name), {now}
FROM {each queues: name text} AS r

-- name: at_gates
-- Choose due jobs at a gate that is locked, from one range of the index, in its order.
SELECT j.id, j.gate, j.queue, j.priority, j.due_at
FROM {each rows: task text, gate text, queue text, priority int} AS r
CROSS JOIN {jobs} AS j {index gated}
WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NOT NULL AND j.task = r.task AND j.gate = r.gate
  AND j.queue = r.queue AND j.priority = r.priority AND j.due_at <= {now}
  AND EXISTS (SELECT 1 FROM {workers} WHERE id = :worker AND state = 'alive')
LIMIT :most

-- name: in_queues
-- Choose due jobs without a gate in a limited queue that is locked, as `claim` does.
WITH priorities (n) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))
SELECT j.id, j.gate, j.queue, j.priority, j.due_at
FROM {each rows: queue text} AS r
CROSS JOIN priorities AS p
CROSS JOIN {jobs} AS j {index claim}
WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NULL AND j.queue = r.queue AND j.priority = p.n
  AND j.due_at <= {now}
  AND j.task IN (SELECT t.name FROM {each tasks: name text} AS t)
  AND EXISTS (SELECT 1 FROM {workers} WHERE id = :worker AND state = 'alive')
LIMIT :most

-- name: take_limited
-- Hand out the jobs that were chosen.
UPDATE {jobs} SET
    state = 'running', fence = {jobs}.fence + 1, claim_id = :claim_id, worker = :worker, started_at = {now}
FROM {each rows: id text} AS r
WHERE {jobs}.id = r.id
RETURNING {claim_columns}

-- name: note_gates
-- Remember starts at gates, and the limits they were judged by.
UPDATE {gates} SET most = r.most, rate_count = r.rate_count, rate_period = r.rate_period, starts = r.starts,
                   seen_at = {now}
FROM {each rows: name text, most int, rate_count int, rate_period int, starts text} AS r
WHERE {gates}.name = r.name

-- name: note_queues
-- Remember starts in queues with a rate.
UPDATE {queues} SET starts = r.starts
FROM {each rows: name text, starts text} AS r
WHERE {queues}.name = r.name

-- fragment: idle_gate
-- True for a gate that no job is at, and whose window is over.
{gates}.seen_at + coalesce({gates}.rate_period, 0) < {now}
AND NOT EXISTS (SELECT 1 FROM {jobs} AS j WHERE j.state = 'running' AND j.gate = {gates}.name)
AND NOT EXISTS (SELECT 1 FROM {jobs} AS j {index gated}
                WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NOT NULL
                  AND j.task = {gates}.task AND j.gate = {gates}.name)

-- name: idle_gates
-- Look at a stretch of gates, by name, and tell which are idle.
SELECT {gates}.name, {idle_gate} FROM {gates} WHERE {gates}.name > :after ORDER BY {gates}.name LIMIT :stretch

-- name: prune_gates
-- Forget gates, if they are still idle; the next job makes them anew.
DELETE FROM {gates} WHERE name IN (SELECT r.name FROM {each rows: name text} AS r) AND {idle_gate}
RETURNING name

-- name: register
-- Add a living worker; registering twice under one id renews it, unless it was declared dead.
INSERT INTO {workers} AS w (id, state, host, host_key, pid, pid_started, version, queues, tasks, slots, session,
                            started_at, beat_at, lease_until)
VALUES (:id, 'alive', :host, :host_key, :pid, :pid_started, :version, :queues, :tasks, :slots, :session,
        {now}, {now}, {now} + :lease)
ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at, lease_until = excluded.lease_until
WHERE w.state = 'alive'
RETURNING beat_at

-- name: pulse
-- Renew the lease of a living worker and note how it is.
UPDATE {workers}
SET beat_at = {now}, lease_until = {now} + :lease, running = :running, done = :done, failed = :failed,
    loop_lag = :loop_lag, last_error = :last_error, paused_at = :paused_at, paused_reason = :paused_reason
WHERE id = :worker AND state = 'alive'
RETURNING beat_at, {commands_wait}, {limits_in_use}

-- name: is_alive
-- Tell the time, whether a worker is alive, and whether it has been told something.
SELECT {now}, EXISTS (SELECT 1 FROM {workers} WHERE id = :worker AND state = 'alive'), {commands_wait}

-- name: held_by
-- List what a worker holds, and what of it is to be cancelled.
SELECT id, fence, claim_id, cancel_requested_at IS NOT NULL
FROM {jobs} WHERE state = 'running' AND worker = :worker

-- name: retire
-- Mark a worker as stopped.
UPDATE {workers} SET state = 'stopped', lease_until = {now}, running = 0 WHERE id = :worker AND state = 'alive'

-- name: peers
-- List the other living workers whose processes can be looked at from here.
SELECT id, pid, pid_started, true, false
FROM {workers} WHERE state = 'alive' AND id <> :worker AND host_key = :host_key

-- name: bury
-- Mark workers as dead.
UPDATE {workers} SET state = 'dead'
WHERE state = 'alive' AND id IN (SELECT r.id FROM {each rows: id text} AS r)
RETURNING id

-- name: forsaken
-- Tell whether there is anything to rescue: a read, so that idle workers do not queue for the write lock.
SELECT EXISTS (SELECT 1 FROM {workers} WHERE state = 'alive' AND lease_until < {now})
    OR EXISTS (
        SELECT 1 FROM {jobs} AS j
        WHERE j.state = 'running'
          AND NOT EXISTS (SELECT 1 FROM {workers} AS w WHERE w.id = j.worker AND w.state = 'alive')
    )

-- name: expire
-- Mark workers as dead whose lease is over.
UPDATE {workers} SET state = 'dead' WHERE state = 'alive' AND lease_until < {now} RETURNING id

-- name: send
-- Tell workers that are alive; each is locked, so that it cannot go without this being dropped.
INSERT INTO {commands} (id, worker, kind, body, created_at)
SELECT r.id, w.id, r.kind, r.body, {now}
FROM {each rows: id text, worker text, kind text, body text} AS r
JOIN {workers} AS w ON w.id = r.worker
WHERE w.state = 'alive' AND w.lease_until >= {now}
{locking}
ON CONFLICT (id) DO NOTHING

-- name: take_commands
-- Hand a worker what it has been told and has not answered; again, if an answer was lost.
UPDATE {commands} SET taken_at = coalesce(taken_at, {now})
WHERE worker = :worker AND done_at IS NULL
RETURNING {command_columns}

-- name: finish_command
-- Keep what came of a command.
UPDATE {commands} SET done_at = {now}, outcome = :outcome WHERE id = :id AND done_at IS NULL

-- name: drop_commands
-- Give up what nobody is left to carry out.
UPDATE {commands} SET done_at = {now}, outcome = :reason, dropped = 1
WHERE done_at IS NULL AND worker IN (SELECT r.id FROM {each rows: id text} AS r)

-- name: commands
-- Read commands by id.
SELECT {command_columns} FROM {commands} WHERE id IN (SELECT r.id FROM {each rows: id text} AS r) ORDER BY id

-- name: commands_of
-- Read what a worker was told last, newest first.
SELECT {command_columns} FROM {commands} WHERE worker = :worker ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: prune_commands
-- Forget commands that were answered long ago.
DELETE FROM {commands} WHERE done_at < :before

-- name: orphans
-- List the claims of workers that are not alive, or that nobody knows.
SELECT j.id, j.fence, j.worker, j.started_at, j.crashes
FROM {jobs} AS j
WHERE j.state = 'running'
  AND NOT EXISTS (SELECT 1 FROM {workers} AS w WHERE w.id = j.worker AND w.state = 'alive')

-- name: adopt
-- Take over orphaned claims under a new fence, if the rescuer is alive; another rescuer's are left to it.
UPDATE {jobs} SET fence = {jobs}.fence + 1, claim_id = :claim_id, worker = :worker
FROM (
    SELECT j.id
    FROM {each rows: id text, fence int} AS r
    JOIN {jobs} AS j ON j.id = r.id AND j.fence = r.fence
    WHERE CASE WHEN j.state = 'running' THEN true ELSE false END
      AND EXISTS (SELECT 1 FROM {workers} AS w WHERE w.id = :worker AND w.state = 'alive')
    ORDER BY j.id
    {skip_locked j}
) AS picked
WHERE {jobs}.id = picked.id
RETURNING {claim_columns}

-- name: declared
-- Tell what schedules were declared as.
SELECT s.name, s.declared FROM {each rows: name text} AS r JOIN {schedules} AS s ON s.name = r.name {locking}

-- name: put_schedules
-- Add schedules or change those that differ; a trigger that was not edited keeps its place in time.
INSERT INTO {schedules} AS s (name, task, payload, trigger_spec, declared, queue, priority, on_crash, retries, timeout,
                              overlap, misfire_window, owner, fired_through, next_at, options, rev, created_at, updated_at)
SELECT r.name, r.task, r.payload, r.trigger_spec, r.declared, r.queue, r.priority, r.on_crash, r.retries, r.timeout,
       r.overlap, r.misfire_window, r.owner, r.fired_through, r.next_at, r.options, 1, {now}, {now}
FROM {each rows: name text, task text, payload text, trigger_spec text, declared text, queue text, priority int,
      on_crash text, retries int, timeout int, overlap text, misfire_window int, owner text, fired_through int,
      next_at int, options text} AS r
WHERE true
ON CONFLICT (name) DO UPDATE SET
    trigger_spec = CASE WHEN s.declared = excluded.declared THEN s.trigger_spec ELSE excluded.trigger_spec END,
    next_at = CASE WHEN s.declared = excluded.declared THEN s.next_at ELSE excluded.next_at END,
    fired_through = CASE WHEN s.declared <> excluded.declared AND s.fired_through < excluded.fired_through
                         THEN excluded.fired_through ELSE s.fired_through END,
    task = excluded.task, payload = excluded.payload, declared = excluded.declared, queue = excluded.queue,
    priority = excluded.priority, on_crash = excluded.on_crash, retries = excluded.retries,
    timeout = excluded.timeout, overlap = excluded.overlap, misfire_window = excluded.misfire_window,
    owner = excluded.owner, options = excluded.options, updated_at = excluded.updated_at, rev = s.rev + 1
WHERE (s.task, s.payload, s.declared, s.queue, s.priority, s.on_crash, s.overlap, s.misfire_window, s.owner)
   <> (excluded.task, excluded.payload, excluded.declared, excluded.queue, excluded.priority, excluded.on_crash,
       excluded.overlap, excluded.misfire_window, excluded.owner)
   OR coalesce(s.retries, -1) <> coalesce(excluded.retries, -1)
   OR coalesce(s.timeout, -1) <> coalesce(excluded.timeout, -1)
   OR coalesce(s.options, '') <> coalesce(excluded.options, '')
RETURNING name

-- name: withdraw
-- Cancel planted jobs that nobody has claimed; their occurrences become free to be planted again.
UPDATE {jobs} SET state = 'cancelled', finished_at = {now}, reason = :reason, span_first = occurrence,
                  occurrence = NULL
WHERE state = 'pending' AND schedule IN (SELECT r.name FROM {each rows: name text} AS r) AND occurrence > {now}
RETURNING schedule, span_first

-- name: withdraw_claimed
-- Ask the workers that hold planted jobs not to start them.
UPDATE {jobs} SET cancel_requested_at = coalesce(cancel_requested_at, {now}), cancel_reason = :reason
WHERE state = 'running' AND started_at IS NULL AND occurrence > {now}
  AND schedule IN (SELECT r.name FROM {each rows: name text} AS r)
RETURNING worker

-- name: rewind
-- Put schedules back to before their withdrawn occurrences: nothing after this moment is accounted for.
-- `again` says whether the trigger still has them.
UPDATE {schedules} SET
    fired_through = CASE WHEN {schedules}.fired_through <= {now} THEN {schedules}.fired_through
                         WHEN r.occurrence > {now} THEN {now} ELSE r.occurrence - 1 END,
    next_at = CASE WHEN r.again = 1 AND ({schedules}.next_at IS NULL OR {schedules}.next_at > r.occurrence)
                   THEN r.occurrence ELSE {schedules}.next_at END
FROM {each rows: name text, occurrence int, again int} AS r
WHERE {schedules}.name = r.name

-- name: due_schedules
-- List the schedules to look at now, earliest first.
SELECT {schedule_columns}
FROM {schedules} AS s
WHERE s.paused_at IS NULL AND s.next_at IS NOT NULL AND s.next_at <= {now} + :ahead
ORDER BY s.next_at LIMIT :limit

-- name: next_schedule
-- Tell the time, and when the next schedule after the due ones comes up.
SELECT {now}, (SELECT min(s.next_at) FROM {schedules} AS s
               WHERE s.paused_at IS NULL AND s.next_at IS NOT NULL AND s.next_at > {now} + :ahead)

-- name: fire
-- Move schedules on, unless somebody else has moved, edited or paused them.
UPDATE {schedules} SET fired_through = r.fired_through, next_at = r.next_at
FROM {each rows: name text, rev int, expected int, fired_through int, next_at int} AS r
WHERE {schedules}.name = r.name AND {schedules}.rev = r.rev AND {schedules}.fired_through = r.expected
  AND {schedules}.paused_at IS NULL
RETURNING {schedules}.name

-- name: pause_schedule
-- Stop a schedule from firing; what was planned before is refused.
UPDATE {schedules} SET paused_at = coalesce(paused_at, {now}), paused_reason = :reason, updated_at = {now},
                       rev = rev + 1
WHERE name = :name
RETURNING name

-- name: resume_schedule
-- Let a schedule fire again from here on.
UPDATE {schedules} SET paused_at = NULL, paused_reason = NULL, next_at = :next_at, fired_through = :fired_through,
                       updated_at = {now}, rev = rev + 1
WHERE name = :name
RETURNING name

-- name: delete_schedule
-- Forget a schedule; its jobs stay.
DELETE FROM {schedules} WHERE name = :name RETURNING name

-- name: cancel
-- Cancel what has not been claimed and flag what has; the state is hidden from the planner as in `held`.
UPDATE {jobs} SET
    state = CASE WHEN {jobs}.state = 'pending' THEN 'cancelled' ELSE {jobs}.state END,
    finished_at = CASE WHEN {jobs}.state = 'pending' THEN {now} ELSE finished_at END,
    reason = CASE WHEN {jobs}.state = 'pending' THEN CAST(:reason AS text) ELSE reason END,
    cancel_requested_at = coalesce(cancel_requested_at, {now}),
    cancel_reason = coalesce(cancel_reason, CAST(:reason AS text))
FROM {each rows: id text} AS r
WHERE {jobs}.id = r.id AND CASE WHEN {jobs}.state IN ('pending', 'running') THEN true ELSE false END
RETURNING {jobs}.id, {jobs}.state, {jobs}.worker, {jobs}.callbacks

-- name: snooze
-- Put off what has not been claimed.
UPDATE {jobs} SET due_at = CASE WHEN {jobs}.due_at > :last THEN :latest
                                WHEN {jobs}.due_at > {now} THEN {jobs}.due_at + :delay
                                ELSE {now} + :delay END
FROM {each rows: id text} AS r
WHERE {jobs}.id = r.id AND CASE WHEN {jobs}.state = 'pending' THEN true ELSE false END
RETURNING {jobs}.id

-- name: reclaim
-- Take claims away from their workers under a new fence; what has started only by force.
UPDATE {jobs} SET fence = {jobs}.fence + 1, claim_id = :claim_id
FROM {each rows: id text} AS r
WHERE {jobs}.id = r.id
  AND CASE WHEN {jobs}.state = 'running' AND (:force = 1 OR {jobs}.started_at IS NULL) THEN true ELSE false END
RETURNING {claim_columns}, {jobs}.worker, {jobs}.started_at

-- name: standing
-- Tell where jobs stand.
SELECT j.id, j.state FROM {each rows: id text} AS r JOIN {jobs} AS j ON j.id = r.id

-- name: existing
-- Tell which of these jobs there are.
SELECT j.id FROM {each rows: id text} AS r JOIN {jobs} AS j ON j.id = r.id

-- name: pause_queue
-- Hand out nothing more from a queue.
INSERT INTO {queues} AS q (name, paused_at, paused_reason) VALUES (:queue, {now}, :reason)
ON CONFLICT (name) DO UPDATE SET paused_at = coalesce(q.paused_at, excluded.paused_at),
                                 paused_reason = excluded.paused_reason

-- name: resume_queue
-- Hand out jobs of a queue again.
UPDATE {queues} SET paused_at = NULL, paused_reason = NULL WHERE name = :queue AND paused_at IS NOT NULL

-- name: set_queue_limit
-- Limit a queue, or no longer; starts that were counted still count.
INSERT INTO {queues} AS q (name, most, rate_count, rate_period) VALUES (:queue, :most, :rate_count, :rate_period)
ON CONFLICT (name) DO UPDATE SET most = excluded.most, rate_count = excluded.rate_count,
                                 rate_period = excluded.rate_period

-- name: prunable
-- Look at a stretch of jobs, oldest first, with what decides how long they stay.
SELECT {now}, s.id, s.state, s.finished_at, s.result_ttl, s.failure_ttl,
       CASE WHEN s.unique_key IS NOT NULL AND s.key_held = 1 THEN s.keep_key END,
       CASE WHEN s.unique_key IS NOT NULL AND s.key_held = 1 THEN s.key_until END,
       s.schedule, s.occurrence, s.result IS NOT NULL OR s.error IS NOT NULL OR s.traceback IS NOT NULL
FROM (SELECT * FROM {jobs} WHERE id > :after ORDER BY id LIMIT :stretch) AS s
ORDER BY s.id

-- name: latest_occurrences
-- Find the earliest of the latest ended occurrences of schedules; nothing where there are fewer.
SELECT r.name, (
    SELECT j.occurrence FROM {jobs} AS j
    WHERE j.schedule = r.name AND j.schedule IS NOT NULL AND j.occurrence IS NOT NULL
      AND j.finished_at IS NOT NULL
    ORDER BY j.occurrence DESC LIMIT 1 OFFSET :others
)
FROM {each rows: name text} AS r

-- name: forget
-- Drop the results and errors of jobs that have ended.
UPDATE {jobs} SET result = NULL, result_error = coalesce(r.note, result_error), error = NULL, traceback = NULL
FROM {each rows: id text, note text} AS r
WHERE {jobs}.id = r.id AND {jobs}.finished_at IS NOT NULL

-- name: forget_attempts
-- Drop the errors of their earlier tries.
UPDATE {attempts} SET error = NULL, traceback = NULL
WHERE job_id IN (SELECT r.id FROM {each rows: id text} AS r)

-- name: prune_attempts
-- Delete the attempts of jobs that are about to go.
DELETE FROM {attempts} WHERE job_id IN (SELECT r.id FROM {each rows: id text} AS r)

-- name: prune_logs
-- Delete the logs of jobs that are about to go.
DELETE FROM {logs} WHERE job_id IN (SELECT r.id FROM {each rows: id text} AS r)

-- name: prune_jobs
-- Delete jobs that have ended.
DELETE FROM {jobs} WHERE id IN (SELECT r.id FROM {each rows: id text} AS r) AND finished_at IS NOT NULL
RETURNING id

-- name: prune_workers
-- Forget workers that have been gone for long and hold nothing.
DELETE FROM {workers}
WHERE state <> 'alive' AND lease_until < :before
  AND NOT EXISTS (SELECT 1 FROM {jobs} AS j WHERE j.state = 'running' AND j.worker = {workers}.id)

-- name: get
-- Read jobs by id.
SELECT {now}, {job_columns} FROM {jobs} WHERE id IN (SELECT r.id FROM {each rows: id text} AS r)

-- name: find
-- Read one page of jobs, newest first, by a walk along the primary key.
SELECT {now}, {job_columns} FROM {jobs} WHERE {on_page} AND {wanted} ORDER BY id DESC LIMIT :limit

-- name: find_unsuccessful
-- The same among the jobs that ended otherwise than well.
SELECT {now}, {job_columns} FROM {jobs}
WHERE (state = 'failed' OR state = 'cancelled' OR state = 'skipped') AND {on_page} AND {wanted}
ORDER BY id DESC LIMIT :limit

-- name: find_newest
-- The same among the newest jobs.
SELECT {now}, {job_columns}
FROM (SELECT * FROM {jobs} WHERE {on_page} ORDER BY id DESC LIMIT :newest) AS newest
WHERE {wanted} ORDER BY id DESC LIMIT :limit

-- name: find_live
-- The same among the jobs that have not ended, which may be few among many. Conditions and order of ids are hidden
-- from the planner, which would walk along the primary key for them. Nothing waits for other jobs yet.
SELECT {now}, {job_columns}
FROM (
    SELECT * FROM {jobs} {index running} WHERE state = 'running'
    UNION ALL
    SELECT * FROM {jobs} {index claim} WHERE state = 'pending' AND waits = 0 AND gate IS NULL
    UNION ALL
    SELECT * FROM {jobs} {index gated} WHERE state = 'pending' AND waits = 0 AND gate IS NOT NULL
) AS live
WHERE CASE WHEN {on_page} THEN {wanted} ELSE false END
ORDER BY coalesce(id, '') DESC LIMIT :limit

-- name: find_of_schedule
-- The same among the jobs of a schedule, as carefully.
SELECT {now}, {job_columns} FROM {jobs}
WHERE schedule = CAST(:schedule AS text) AND schedule IS NOT NULL
  AND CASE WHEN {on_page} THEN {wanted} ELSE false END
ORDER BY coalesce(id, '') DESC LIMIT :limit

-- name: attempts
-- Read the tries of a job that ended without ending it.
SELECT job_id, fence, worker, due_at, started_at, ended_at, outcome, error, traceback
FROM {attempts} WHERE job_id = :job_id ORDER BY fence

-- name: logs
-- Read what the runs of a job have logged, from some line on.
SELECT job_id, fence, attempt, line, text
FROM {logs} WHERE job_id = :job_id AND (fence, line) > (:fence, :line) ORDER BY fence, line

-- name: schedules
-- Read all schedules.
SELECT {schedule_columns} FROM {schedules} AS s ORDER BY s.name

-- name: workers
-- Read all workers, newest first. One whose lease is over is dead, though nobody may have marked it yet.
SELECT id, CASE WHEN state = 'alive' AND lease_until < {now} THEN 'dead' ELSE state END, host, host_key, pid, pid_started, version, queues, tasks, slots, started_at, beat_at,
       lease_until, running, done, failed, loop_lag, last_error, paused_at, paused_reason
FROM {workers} ORDER BY started_at DESC, id

-- name: paused_queues
-- Read the queues that hand out nothing.
SELECT name, paused_reason FROM {queues} WHERE paused_at IS NOT NULL ORDER BY name

-- name: outlook
-- Tell the time, and whether a queue hands out jobs.
SELECT {now}, q.paused_at, q.paused_reason
FROM (SELECT 1 AS one) AS always LEFT JOIN {queues} AS q ON q.name = :queue

-- name: limits_on
-- Tell the limits that a job runs under, as they were last seen, and how full they are.
SELECT 'task', g.name, g.most, g.rate_count, g.rate_period, g.starts,
       (SELECT count(*) FROM {jobs} AS j WHERE j.state = 'running' AND j.gate = g.name)
FROM {gates} AS g WHERE g.name = CAST(:gate AS text)
UNION ALL
SELECT 'queue', q.name, q.most, q.rate_count, q.rate_period, q.starts,
       (SELECT count(*) FROM {jobs} AS j WHERE j.state = 'running' AND j.queue = q.name)
FROM {queues} AS q WHERE q.name = :queue AND (q.most IS NOT NULL OR q.rate_count IS NOT NULL)

-- name: queues
-- Read what is set for queues.
SELECT name, paused_at, paused_reason, most, rate_count, rate_period FROM {queues} ORDER BY name

-- name: tally_waiting
-- Count what waits in each queue, due and not, up to a bound in each range of the claim index. The queues are
-- found by a probe of the index for each. The orders keep it to the index, whatever the planner has learnt.
WITH RECURSIVE waiting (name) AS (
    SELECT (SELECT j.queue FROM {jobs} AS j {index claim} WHERE {claimable} ORDER BY j.queue LIMIT 1)
    UNION ALL
    SELECT (SELECT j.queue FROM {jobs} AS j {index claim}
            WHERE {claimable} AND j.queue > waiting.name ORDER BY j.queue LIMIT 1)
    FROM waiting WHERE waiting.name IS NOT NULL
), priorities (n) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))
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
    WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NOT NULL
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
-- Lock some jobs of a queue that nobody has claimed.
SELECT j.id FROM {jobs} AS j {index claim}
WHERE {claimable} AND j.queue = :queue AND j.created_at <= :before
ORDER BY j.priority, j.due_at, j.id
LIMIT :limit
{skip_locked j}

-- name: purgeable_gated
-- The same for jobs that wait at gates.
SELECT j.id FROM {jobs} AS j
WHERE j.state = 'pending' AND j.waits = 0 AND j.gate IS NOT NULL AND j.queue = :queue AND j.created_at <= :before
ORDER BY j.due_at
LIMIT :limit
{skip_locked j}

-- name: queue_limits
-- Read the limits of queues.
SELECT name, most, rate_count, rate_period FROM {queues}
WHERE most IS NOT NULL OR rate_count IS NOT NULL ORDER BY name

-- name: counts
-- Count jobs by queue and state.
SELECT queue, state, count(*) FROM {jobs} GROUP BY queue, state

-- name: schema_version
-- Tell the version of the tables.
SELECT coalesce(max(version), 0) FROM {meta}

-- name: store_id
-- Tell what this store and no other is called.
SELECT store_id FROM {meta} WHERE version = 1
