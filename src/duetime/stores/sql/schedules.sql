-- Schedules: add, change, fire.

-- fragment: schedule_columns
-- A whole schedule, with the number of its jobs that have not ended, and of those that failed one after the other.
{names whole_schedules: s.$},
(SELECT count(*) FROM {jobs} AS j {index history}
 WHERE j.schedule = s.name AND j.schedule IS NOT NULL AND j.state IN ('pending', 'running')),
CASE WHEN s.pause_after IS NULL THEN 0 ELSE (
    SELECT count(*) FROM {jobs} AS j {index history}
    WHERE j.schedule = s.name AND j.schedule IS NOT NULL AND j.state = 'failed' AND j.occurrence > coalesce((
          SELECT w.occurrence FROM {jobs} AS w {index history}
          WHERE w.schedule = s.name AND w.schedule IS NOT NULL AND w.state = 'succeeded'
            AND w.occurrence >= s.streak_from
          ORDER BY w.occurrence DESC LIMIT 1
      ), s.streak_from - 1)
) END

-- name: add_schedules
INSERT INTO {schedules} ({names new_schedule}, rev, created_at, updated_at)
SELECT r.*, 1, {now}, {now}
FROM {each rows: new_schedule} AS r
WHERE true
ON CONFLICT (name) DO NOTHING
RETURNING name

-- name: change_schedules
UPDATE {schedules} SET
    task = r.task, payload = r.payload, trigger_spec = r.trigger_spec, declared = r.declared, owner = r.owner,
    queue = r.queue, priority = r.priority, on_crash = r.on_crash, retries = r.retries, timeout = r.timeout,
    options = r.options, overlap = r.overlap, overlap_limit = r.overlap_limit, misfire = r.misfire,
    misfire_window = r.misfire_window, misfire_limit = r.misfire_limit, pause_after = r.pause_after,
    paused_at = r.paused_at, paused_reason = r.paused_reason, paused_by = r.paused_by,
    paused_until = r.paused_until, parked_at = r.parked_at, fired_through = r.fired_through, next_at = r.next_at,
    made = r.made, streak_from = r.streak_from, rev = {schedules}.rev + 1, updated_at = {now}
FROM {each rows: new_schedule, was_rev int, was_fired_through int} AS r
WHERE {schedules}.name = r.name AND {schedules}.rev = r.was_rev AND {schedules}.fired_through = r.was_fired_through
RETURNING {schedules}.name

-- fragment: planted
-- True for a live job of a schedule, given by `r`, that has not begun: its occurrence is still to come, or it waits for
-- the time that was drawn for it and those are asked for.
{jobs}.schedule = r.name AND {jobs}.schedule IS NOT NULL AND {jobs}.state IN ('pending', 'running')
AND (r.only IS NULL OR {jobs}.occurrence = r.only)
AND ({jobs}.occurrence > {now} OR (r.drawn = 1 AND {jobs}.occurrence IS NOT NULL AND {jobs}.due_at > {now}
                                   AND {jobs}.fence = CASE WHEN {jobs}.state = 'pending' THEN 0 ELSE 1 END))

-- name: lock_planted
-- Lock planted jobs, so that none is claimed or given back between the statements that take them back.
SELECT {jobs}.id
FROM {each rows: name text, reason text, only int, drawn int} AS r CROSS JOIN {jobs} {index history}
WHERE {planted} ORDER BY {jobs}.id {locking}

-- name: withdraw
-- Cancel planted jobs that are not claimed. An occurrence that is to come becomes free to be planted again, and one
-- that is named free for another record; any other stays with its job.
UPDATE {jobs} {index history} SET
    state = 'cancelled', finished_at = {now}, reason = r.reason,
    span_first = CASE WHEN occurrence > {now} OR r.only IS NOT NULL THEN occurrence ELSE span_first END,
    occurrence = CASE WHEN occurrence > {now} OR r.only IS NOT NULL THEN NULL ELSE occurrence END
FROM {each rows: name text, reason text, only int, drawn int} AS r
WHERE {planted} AND {jobs}.state = 'pending'
RETURNING {jobs}.schedule, {jobs}.span_first, {jobs}.occurrence

-- name: withdraw_claimed
-- Ask the workers that hold planted jobs not to start them. There are no callbacks, as for jobs that are not claimed, unless
-- the job was cancelled before.
UPDATE {jobs} {index history} SET
                  callbacks = CASE WHEN cancel_requested_at IS NOT NULL THEN callbacks END,
                  cancel_requested_at = coalesce(cancel_requested_at, {now}),
                  cancel_reason = coalesce(cancel_reason, r.reason)
FROM {each rows: name text, reason text, only int, drawn int} AS r
WHERE {planted} AND {jobs}.state = 'running' AND {jobs}.started_at IS NULL
RETURNING {jobs}.worker

-- name: rewind
-- Put schedules back to before what was withdrawn, as if those jobs had not been made. A new trigger has made none.
UPDATE {schedules} SET
    fired_through = coalesce(r.fired_through, {schedules}.fired_through),
    next_at = coalesce(r.next_at, {schedules}.next_at),
    made = CASE WHEN {schedules}.made > r.withdrawn THEN {schedules}.made - r.withdrawn ELSE 0 END
FROM {each rows: name text, fired_through int, next_at int, withdrawn int} AS r
WHERE {schedules}.name = r.name

-- fragment: fires
-- What the index of the schedules that fire next holds.
s.paused_at IS NULL AND s.parked_at IS NULL AND s.next_at IS NOT NULL

-- fragment: resumes
-- What the index of the schedules that resume by themselves holds.
s.paused_at IS NOT NULL AND s.parked_at IS NULL AND s.paused_until IS NOT NULL

-- name: due_schedules
SELECT {schedule_columns} FROM {schedules} AS s
WHERE {fires} AND s.next_at <= {now} + :ahead
ORDER BY s.next_at LIMIT :limit

-- name: resuming_schedules
SELECT {schedule_columns} FROM {schedules} AS s
WHERE {resumes} AND s.paused_until <= {now}
ORDER BY s.paused_until LIMIT :limit

-- name: next_schedule
-- Tell the time, when the next schedule after the due ones comes up, whether one that was paused until now goes on,
-- and when the next one does.
SELECT {now}, (SELECT min(s.next_at) FROM {schedules} AS s WHERE {fires} AND s.next_at > {now} + :ahead),
       EXISTS (SELECT 1 FROM {schedules} AS s WHERE {resumes} AND s.paused_until <= {now}),
       (SELECT min(s.paused_until) FROM {schedules} AS s WHERE {resumes} AND s.paused_until > {now})

-- name: fire
-- Move schedules on, unless they were moved, changed or paused meanwhile. One whose pause is over can be moved on
-- before it resumes.
UPDATE {schedules} SET
    fired_through = r.fired_through, next_at = r.next_at, made = {schedules}.made + r.made,
    paused_at = CASE WHEN r.pause IS NOT NULL THEN {now} WHEN r.resumes = 0 THEN {schedules}.paused_at END,
    paused_reason = CASE WHEN r.pause IS NOT NULL THEN r.pause WHEN r.resumes = 0 THEN {schedules}.paused_reason END,
    paused_by = CASE WHEN r.pause IS NOT NULL THEN r.who WHEN r.resumes = 0 THEN {schedules}.paused_by END,
    paused_until = CASE WHEN r.pause IS NULL AND r.resumes = 0 THEN {schedules}.paused_until END,
    streak_from = CASE WHEN r.resumes = 1 THEN {now} ELSE {schedules}.streak_from END,
    rev = {schedules}.rev + CASE WHEN r.pause IS NOT NULL OR r.resumes = 1 THEN 1 ELSE 0 END,
    updated_at = CASE WHEN r.pause IS NOT NULL OR r.resumes = 1 THEN {now} ELSE {schedules}.updated_at END
FROM {each rows: name text, rev int, expected int, fired_through int, next_at int, made int, pause text, resumes int,
      who text} AS r
WHERE {schedules}.name = r.name AND {schedules}.rev = r.rev AND {schedules}.fired_through = r.expected
  AND {schedules}.parked_at IS NULL AND ({schedules}.paused_at IS NULL OR {schedules}.paused_until <= {now})
RETURNING {schedules}.name

-- name: fired_jobs
-- Find the jobs that schedules have made at their own times and that have not ended; neither what was triggered by hand,
-- which has no occurrence, nor what was made up for, which says the first of what it stands for.
SELECT j.id FROM {each rows: name text} AS r CROSS JOIN {jobs} AS j {index history}
WHERE j.schedule = r.name AND j.schedule IS NOT NULL AND j.state IN ('pending', 'running')
  AND j.occurrence IS NOT NULL AND j.span_first IS NULL

-- name: delete_schedule
DELETE FROM {schedules} WHERE name = :name
RETURNING name

-- name: schedules
SELECT {schedule_columns} FROM {schedules} AS s ORDER BY s.name

-- name: schedules_page
SELECT {schedule_columns} FROM {schedules} AS s
WHERE s.name > CAST(:after AS text)
  AND (CAST(:queues AS text) IS NULL OR s.queue IN (SELECT r.queue FROM {each queues: queue text} AS r))
ORDER BY s.name LIMIT :limit

-- name: code_schedules
SELECT name, task, CASE WHEN parked_at IS NULL THEN 0 ELSE 1 END FROM {schedules} WHERE owner = 'code' ORDER BY name

-- name: get_schedules
-- Read schedules by name. The order of a CROSS JOIN stands, whatever SQLite has learnt of tables that were small.
SELECT {schedule_columns} FROM {each rows: name text} AS r CROSS JOIN {schedules} AS s
WHERE s.name = r.name ORDER BY s.name

-- name: occurrences
-- Read the records of a schedule for a stretch of time: those that lie in it, and the first one after it, which may
-- stand for occurrences that lie in it, too.
SELECT {now}, {names stored_job} FROM {jobs}
WHERE schedule = :schedule AND (occurrence IS NULL) IS FALSE AND occurrence >= :since AND occurrence <= coalesce((
    SELECT n.occurrence FROM {jobs} AS n
    WHERE n.schedule = :schedule AND (n.occurrence IS NULL) IS FALSE AND n.occurrence > :until
    ORDER BY n.occurrence LIMIT 1
), :until)
ORDER BY occurrence LIMIT :limit

-- name: past_occurrences
-- Read the records of a schedule up to an instant, latest first, perhaps without what was skipped.
SELECT {now}, {names stored_job} FROM {jobs}
WHERE schedule = :schedule AND (occurrence IS NULL) IS FALSE AND occurrence <= :until AND (:made = 0 OR state <> 'skipped')
ORDER BY occurrence DESC LIMIT :limit

-- fragment: made_by
-- The jobs in one state that a schedule has made, given by `r`.
FROM {jobs} AS j {index history} WHERE j.schedule = r.name AND j.schedule IS NOT NULL AND j.state = r.state

-- fragment: made_count
-- How many there are, up to a bound.
(SELECT count(*) FROM (SELECT 1 {made_by} LIMIT :most) AS few)

-- fragment: ran
-- What was cancelled may not have begun.
(r.state <> 'cancelled' OR j.started_at IS NOT NULL)

-- fragment: newest_by_hand
-- The newest that ran of those that were triggered by hand. The index does not have them in order: of very many, those
-- are looked at that lie at the end of the table.
(SELECT max(j.id) FROM (SELECT j.id, j.started_at {made_by} AND j.occurrence IS NULL ORDER BY j.occurrence DESC LIMIT 100) AS j
 WHERE {ran})

-- name: count_runs
-- Count what schedules have made that ended in some state, and find the latest that ran, by occurrence and by hand.
SELECT r.name, r.state, {made_count},
       (SELECT j.id {made_by} AND j.occurrence IS NOT NULL AND {ran} ORDER BY j.occurrence DESC LIMIT 1), {newest_by_hand}
FROM {each rows: name text, state text} AS r

-- name: latest_runs
SELECT {now}, id, schedule, state, occurrence, created_at, started_at, finished_at, error, reason, failure_ttl
FROM {jobs} WHERE id IN (SELECT r.id FROM {each rows: id text} AS r)

-- name: lock_spans
SELECT {jobs}.id, coalesce({jobs}.span_first, {jobs}.occurrence), {jobs}.occurrence, {jobs}.span_count
FROM {each rows: id text} AS r CROSS JOIN {jobs} WHERE {named} ORDER BY {jobs}.id {locking}

-- name: cut_spans
UPDATE {jobs} SET span_first = r.span_first, occurrence = r.occurrence, span_count = r.span_count
FROM {each rows: id text, span_first int, occurrence int, span_count int} AS r
WHERE {named}

-- name: add_entries
INSERT INTO {audit} (id, at, who, verb, target, detail)
SELECT r.id, {now}, r.who, r.verb, r.target, r.detail
FROM {each rows: id text, who text, verb text, target text, detail text} AS r WHERE true ON CONFLICT DO NOTHING

-- name: noted
SELECT a.id FROM {each rows: id text} AS r CROSS JOIN {audit} AS a WHERE a.id = r.id

-- name: entries
-- Read what was done to something, newest first by the store's clock: ids have the clocks of those who made them.
SELECT id, at, who, verb, target, detail FROM {audit}
WHERE target = :target ORDER BY at DESC, id DESC LIMIT :limit

-- name: entries_before
SELECT id, at, who, verb, target, detail FROM {audit}
WHERE target = :target AND (at, id) < (SELECT b.at, b.id FROM {audit} AS b WHERE b.id = :before)
ORDER BY at DESC, id DESC LIMIT :limit

-- name: all_entries
SELECT id, at, who, verb, target, detail FROM {audit} ORDER BY at DESC, id DESC LIMIT :limit

-- name: all_entries_before
SELECT id, at, who, verb, target, detail FROM {audit}
WHERE (at, id) < (SELECT b.at, b.id FROM {audit} AS b WHERE b.id = :before)
ORDER BY at DESC, id DESC LIMIT :limit

-- name: prune_entries
-- Forget what was done long ago.
DELETE FROM {audit} WHERE id IN (SELECT r.id FROM (
    SELECT a.id FROM {audit} AS a WHERE a.at < :before ORDER BY a.at LIMIT 10000
) AS r)
