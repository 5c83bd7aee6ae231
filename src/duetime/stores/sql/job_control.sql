-- What people do to jobs.

-- name: cancel
-- Cancel what has not been claimed and flag what has; the state is hidden from the planner as in `held`.
UPDATE {jobs} SET
    finished_at = CASE WHEN {jobs}.state = 'pending' THEN {now} ELSE finished_at END,
    reason = CASE WHEN {jobs}.state = 'pending' THEN CAST(:reason AS text) ELSE reason END,
    cancel_requested_at = coalesce(cancel_requested_at, {now}),
    cancel_reason = coalesce(cancel_reason, CAST(:reason AS text)),
    state = CASE WHEN {jobs}.state = 'pending' THEN 'cancelled' ELSE {jobs}.state END
FROM {each rows: id text} AS r
WHERE {named} AND CASE WHEN {jobs}.state IN ('pending', 'running') THEN true ELSE false END
RETURNING {jobs}.id, {jobs}.state, {jobs}.worker, {jobs}.callbacks

-- name: delete_jobs
-- Remove what no worker has.
DELETE FROM {jobs} WHERE id IN (SELECT r.id FROM {each rows: id text} AS r)
  AND CASE WHEN state = 'running' THEN false ELSE true END
RETURNING id

-- name: delete_attempts
DELETE FROM {attempts} WHERE job_id IN (SELECT r.id FROM {each rows: id text} AS r)

-- name: delete_logs
DELETE FROM {logs} WHERE job_id IN (SELECT r.id FROM {each rows: id text} AS r)

-- fragment: edited_due_at
CASE WHEN r.due_at IS NOT NULL THEN r.due_at
     WHEN r.delay IS NOT NULL THEN {now} + r.delay
     WHEN r.postpone IS NULL THEN {jobs}.due_at
     WHEN {jobs}.due_at > :latest - r.postpone THEN :latest
     WHEN {jobs}.due_at > {now} THEN {jobs}.due_at + r.postpone
     ELSE {now} + r.postpone END

-- fragment: as_expected
-- Neither claimed nor edited since it was read; no number below is negative.
({jobs}.fence = r.if_fence AND {jobs}.queue = r.if_queue AND {jobs}.priority = r.if_priority
 AND {jobs}.payload = r.if_payload AND coalesce({jobs}.retries, -1) = coalesce(r.if_retries, -1)
 AND coalesce({jobs}.timeout, -1) = coalesce(r.if_timeout, -1)
 AND coalesce({jobs}.expires_at, -1) = coalesce(r.if_expires_at, -1))

-- name: edit
-- Change what waits; what is not given stays.
UPDATE {jobs} SET
    expires_at = coalesce(r.expires_at, {edited_due_at} + r.expires, {jobs}.expires_at),
    due_at = {edited_due_at},
    queue = coalesce(r.queue, {jobs}.queue), priority = coalesce(r.priority, {jobs}.priority),
    retries = coalesce(r.retries, {jobs}.retries), timeout = coalesce(r.timeout, {jobs}.timeout),
    gate = CASE WHEN r.payload IS NULL THEN {jobs}.gate ELSE r.gate END,
    payload = coalesce(r.payload, {jobs}.payload)
FROM {each rows: id text, due_at int, delay int, postpone int, queue text, priority int, retries int, timeout int,
      expires int, expires_at int, payload text, gate text, if_due_at int, if_fence int, if_queue text,
      if_priority int, if_retries int, if_timeout int, if_expires_at int, if_payload text} AS r
WHERE {named} AND CASE WHEN {jobs}.state = 'pending' THEN true ELSE false END
  AND {jobs}.due_at = coalesce(r.if_due_at, {jobs}.due_at)
  AND (r.if_fence IS NULL OR {as_expected})
RETURNING {jobs}.id

-- name: reclaim
-- Take claims away from their workers under a new fence; what has started only by force.
UPDATE {jobs} SET fence = {jobs}.fence + 1, claim_id = :claim_id
FROM {each rows: id text} AS r
WHERE {named}
  AND CASE WHEN {jobs}.state = 'running' AND (:force = 1 OR {jobs}.started_at IS NULL) THEN true ELSE false END
RETURNING {claim_columns}, {jobs}.worker, {jobs}.started_at

-- name: standing
SELECT j.id, j.state FROM {each rows: id text} AS r JOIN {jobs} AS j ON j.id = r.id
