-- Schedules: put, fire, pause.

-- fragment: schedule_columns
-- A whole schedule, with the number of its jobs that have not ended.
s.name, s.task, s.payload, s.trigger_spec, s.queue, s.priority, s.on_crash, s.retries, s.timeout, s.overlap,
s.misfire_window, s.owner, s.paused_at, s.paused_reason, s.fired_through, s.next_at, s.rev, s.created_at,
s.updated_at,
(SELECT count(*) FROM {jobs} AS j WHERE j.schedule = s.name AND (j.state = 'pending' OR j.state = 'running')),
s.options

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
-- Ask the workers that hold planted jobs not to start them; nobody is called, as for those that nobody holds.
UPDATE {jobs} SET cancel_requested_at = coalesce(cancel_requested_at, {now}), cancel_reason = :reason, callbacks = NULL
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

-- name: schedules
-- Read all schedules.
SELECT {schedule_columns} FROM {schedules} AS s ORDER BY s.name
