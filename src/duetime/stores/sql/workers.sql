-- Workers: their leases, the rescue of their jobs, and what they are told.

-- fragment: commands_wait
-- Whether a worker has been told something that it has not answered; costs no statement of its own.
EXISTS (SELECT 1 FROM {commands} AS c WHERE c.worker = :worker AND c.done_at IS NULL)

-- name: register
-- Add a living worker; registering twice under one id renews it, unless it was declared dead. Tell whether the work goes on
-- elsewhere; costs no statement of its own.
INSERT INTO {workers} (id, state, host, host_key, pid, pid_started, version, queues, tasks, declares, fires, name, slots,
                       started_at, beat_at, lease_until)
VALUES (:id, 'alive', :host, :host_key, :pid, :pid_started, :version, :queues, :tasks, :declares, :fires, :name, :slots,
        {now}, {now}, {now} + :lease)
ON CONFLICT (id) DO UPDATE SET
    beat_at = CASE WHEN {workers}.state = 'alive' THEN excluded.beat_at ELSE {workers}.beat_at END,
    lease_until = CASE WHEN {workers}.state = 'alive' THEN excluded.lease_until ELSE {workers}.lease_until END
RETURNING {now}, {moved}

-- fragment: near
FROM {jobs} AS j {index claim} WHERE {claimable} AND j.queue = q.name AND j.priority = p.n

-- fragment: first_near
-- When the next of them falls due that is for this worker, or the hundredth.
(SELECT coalesce(min(CASE WHEN near.task IN (SELECT t.name FROM {each tasks: name text} AS t) THEN near.due_at END),
                 CASE WHEN count(*) = 100 THEN max(near.due_at) END)
 FROM (SELECT j.task, j.due_at {near} ORDER BY j.due_at, j.id LIMIT 100) AS near)

-- fragment: next_job
-- When the next job of `queues` and `tasks` falls due that no limit applies to, or sooner. Of each queue and priority the
-- next hundred are looked at, since a lease must not wait for others' backlog; if none is for this worker, the last of
-- them is when to look further, by `next_due`.
(
    WITH {priorities}
    SELECT min({first_near}) FROM {each queues: name text} AS q CROSS JOIN priorities AS p WHERE {unrestricted}
)

-- fragment: is_forsaken
(EXISTS (SELECT 1 FROM {workers} AS fw WHERE fw.state = 'alive' AND fw.lease_until < {now})
 OR EXISTS (
    SELECT 1 FROM {jobs} AS fj
    WHERE fj.state = 'running'
      AND NOT EXISTS (SELECT 1 FROM {workers} AS fw WHERE fw.id = fj.worker AND fw.state = 'alive')))

-- name: pulse
-- Renew the lease of a living worker, note how it is, and look for what it may not have been told.
UPDATE {workers}
SET beat_at = {now}, lease_until = {now} + :lease, running = :running, done = :done, failed = :failed,
    loop_lag = :loop_lag, last_error = :last_error, paused_at = :paused_at, paused_reason = :paused_reason
WHERE id = :worker AND state = 'alive'
RETURNING beat_at, watched_until, {commands_wait}, {limits_in_use},
    (SELECT count(*) FROM {workers} AS w WHERE w.state = 'alive'),
    (SELECT max(w.started_at) FROM {workers} AS w WHERE w.state = 'alive'),
    (SELECT min(w.lease_until) FROM {workers} AS w WHERE w.state = 'alive' AND w.id <> :worker),
    EXISTS (SELECT 1 FROM {jobs} AS h WHERE h.state = 'running' AND h.worker = :worker),
    {next_job},
    CASE WHEN :schedules = 1 THEN (SELECT min(s.next_at) FROM {schedules} AS s WHERE {fires}) END,
    CASE WHEN :schedules = 1 THEN (SELECT min(s.paused_until) FROM {schedules} AS s WHERE {resumes}) END,
    CASE WHEN :orphans = 1 THEN {is_forsaken} ELSE false END

-- name: is_alive
SELECT {now}, {worker_lives}, {commands_wait}, (SELECT w.watched_until FROM {workers} AS w WHERE w.id = :worker)

-- name: held_by
SELECT id, fence, claim_id, cancel_requested_at IS NOT NULL
FROM {jobs} WHERE state = 'running' AND worker = :worker

-- name: retire
UPDATE {workers} SET state = 'stopped', lease_until = {now}, running = 0
WHERE id = :worker AND state = 'alive'

-- name: peers
-- List the other living workers whose processes can be looked at from here, or whose lease ends soon.
SELECT id, pid, pid_started, coalesce(host_key = :host_key, false), lease_until - {now}
FROM {workers}
WHERE state = 'alive' AND id <> :worker AND (host_key = :host_key OR lease_until < {now} + :soon)

-- name: bury
UPDATE {workers} SET state = 'dead'
FROM {each rows: id text} AS r
WHERE {workers}.id = r.id AND {workers}.state = 'alive'
RETURNING {workers}.id

-- name: forsaken
-- Tell whether there is anything to rescue: a read, so that idle workers do not queue for the write lock.
SELECT {is_forsaken}

-- name: expire
-- Mark workers as dead whose lease is over; one that was stopped in a transaction is left until the server has ended that.
UPDATE {workers} SET state = 'dead'
FROM (
    SELECT w.id FROM {workers} AS w WHERE w.state = 'alive' AND w.lease_until < {now} {skip_locked w}
) AS late
WHERE {workers}.id = late.id
RETURNING {workers}.id

-- name: orphans
SELECT j.id, j.fence, j.worker, j.started_at, j.crashes, j.due_at <= {now} FROM {jobs} AS j
WHERE j.state = 'running'
  AND NOT EXISTS (SELECT 1 FROM {workers} AS w WHERE w.id = j.worker AND w.state = 'alive')

-- name: adopt
-- Take over orphaned claims under a new fence, if the rescuer is alive; another rescuer's are left to it.
UPDATE {jobs} SET fence = {jobs}.fence + 1, claim_id = :claim_id, worker = :worker
FROM (
    SELECT j.id FROM {each rows: id text, fence int} AS r JOIN {jobs} AS j ON j.id = r.id AND j.fence = r.fence
    WHERE CASE WHEN j.state = 'running' THEN true ELSE false END
      AND {worker_lives}
    ORDER BY j.id {skip_locked j}
) AS picked
WHERE {jobs}.id = picked.id
RETURNING {claim_columns}

-- name: prune_workers
DELETE FROM {workers} WHERE id IN (SELECT r.id FROM (
    SELECT w.id FROM {workers} AS w WHERE w.state <> 'alive' AND w.lease_until < :before
      AND NOT EXISTS (SELECT 1 FROM {jobs} AS j WHERE j.state = 'running' AND j.worker = w.id)
) AS r)

-- name: workers
-- Read all workers, newest first. One whose lease is over is dead, though it may not be marked as dead yet.
SELECT id, host, host_key, pid, pid_started, version, queues, slots, tasks, declares, fires, name,
       CASE WHEN state = 'alive' AND lease_until < {now} THEN 'dead' ELSE state END,
       started_at, beat_at, lease_until, running, done, failed, loop_lag, last_error, paused_at, paused_reason
FROM {workers} ORDER BY started_at DESC, id

-- name: announce
INSERT INTO {tasks} (name, queue, options, argument_schema, announced_at)
SELECT r.name, r.queue, r.options, r.argument_schema, {now}
FROM {each rows: name text, queue text, options text, argument_schema text} AS r
WHERE true
ON CONFLICT (name) DO UPDATE SET
    queue = excluded.queue, options = excluded.options, argument_schema = excluded.argument_schema,
    announced_at = excluded.announced_at

-- name: announced
SELECT name, queue, options, argument_schema, announced_at FROM {tasks} ORDER BY name

-- name: announced_of
SELECT t.name, t.queue, t.options, t.argument_schema, t.announced_at
FROM {each rows: name text} AS r CROSS JOIN {tasks} AS t WHERE t.name = r.name ORDER BY t.name

-- name: prune_tasks
DELETE FROM {tasks} WHERE announced_at < :before

-- fragment: command_columns
id, worker, kind, body, created_at, taken_at, done_at, outcome, dropped

-- name: send
-- Tell workers that are alive; each is locked, so that it cannot go without this being dropped.
INSERT INTO {commands} (id, worker, kind, body, created_at)
SELECT r.id, w.id, r.kind, r.body, {now}
FROM {each rows: id text, worker text, kind text, body text} AS r
{in_order} {workers} AS w {by_key} ON w.id = r.worker
WHERE w.state = 'alive' AND w.lease_until >= {now}
{locking}
ON CONFLICT (id) DO NOTHING

-- name: take_commands
-- Hand a worker what it has been told and has not answered; again, if an answer was lost.
UPDATE {commands} {index open of commands} SET taken_at = coalesce(taken_at, {now})
WHERE worker = :worker AND done_at IS NULL
RETURNING {command_columns}

-- name: finish_command
UPDATE {commands} SET done_at = {now}, outcome = :outcome
WHERE id = :id AND done_at IS NULL

-- name: drop_commands
UPDATE {commands} {index open of commands} SET done_at = {now}, outcome = :reason, dropped = 1
FROM {each rows: id text} AS r
WHERE {commands}.worker = r.id AND {commands}.done_at IS NULL

-- name: commands
SELECT {command_columns} FROM {commands} WHERE id IN (SELECT r.id FROM {each rows: id text} AS r) ORDER BY id

-- name: commands_of
SELECT {command_columns} FROM {commands} WHERE worker = :worker ORDER BY created_at DESC, id DESC LIMIT :limit

-- name: prune_commands
DELETE FROM {commands} WHERE id IN (SELECT r.id FROM (SELECT c.id FROM {commands} AS c WHERE c.done_at < :before) AS r)
