-- What came of runs, and what they say meanwhile.

-- name: holders
-- Lock claims that are about to go back, and tell what their attempts must remember.
SELECT {jobs}.id, {jobs}.worker, {jobs}.due_at
FROM {each rows: id text, fence int, claim_id text} AS r
JOIN {jobs} ON {named}
WHERE {held}
ORDER BY r.id
{locking}

-- name: settle
-- Write what runs came to.
UPDATE {jobs} SET
    state = CASE WHEN {cancelled_instead} THEN 'cancelled' ELSE r.state END,
    started_at = CASE WHEN {goes_back} THEN NULL ELSE r.started_at END,
    finished_at = CASE WHEN {cancelled_instead} THEN {now} ELSE r.finished_at END,
    reason = CASE WHEN {cancelled_instead} OR (r.state = 'cancelled' AND cancel_requested_at IS NOT NULL)
                  THEN cancel_reason ELSE r.reason END,
    worker = CASE WHEN {goes_back} THEN NULL ELSE coalesce(r.worker, {jobs}.worker) END,
    due_at = coalesce(r.due_at, {jobs}.due_at),
    failures = r.failures, crashes = r.crashes, blames = r.blames,
    result = r.result, result_error = r.result_error, error = r.error, traceback = r.traceback,
    error_type = r.error_type, fingerprint = r.fingerprint,
    progress = CASE WHEN {goes_back} THEN NULL ELSE progress END,
    progress_note = CASE WHEN {goes_back} THEN NULL ELSE progress_note END
FROM {each rows: id text, fence int, claim_id text, state text, started_at int, finished_at int, due_at int,
      failures int, crashes int, blames int, worker text, result text, result_error text, error text, traceback text,
      error_type text, fingerprint text, reason text} AS r
WHERE {named} AND {held}
RETURNING {jobs}.id, {jobs}.fence, {jobs}.claim_id

-- fragment: successes
-- What `succeed` writes; a run says which claim it was under, and why its result is lost, only if others do not share it.
(
    SELECT s.id, s.started_at, s.finished_at, s.result, coalesce(s.fence, :fence) AS fence,
           coalesce(s.claim_id, :claim_id) AS claim_id, s.result_error
    FROM {each rows: id text, started_at int, finished_at int, result text, fence int, claim_id text,
          result_error text} AS s
)

-- name: succeed
-- Write runs that succeeded and need nothing else: the same as `settle` with half the values to read for each job,
-- what most of them share only once, and only their number for an answer.
UPDATE {jobs} SET
    state = 'succeeded', started_at = r.started_at, finished_at = r.finished_at,
    result = r.result, result_error = r.result_error, error = NULL, traceback = NULL,
    error_type = NULL, fingerprint = NULL, reason = NULL
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
INSERT INTO {attempts} ({names whole_attempts})
SELECT r.job_id, r.fence, r.worker, r.due_at, r.started_at, coalesce(r.ended_at, {now}), r.outcome, r.error, r.traceback,
       r.error_type, r.fingerprint
FROM {each rows: whole_attempts} AS r
WHERE true
ON CONFLICT DO NOTHING

-- name: trim_attempts
-- Forget old tries that only snoozed.
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
WHERE {named} AND {held}

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
