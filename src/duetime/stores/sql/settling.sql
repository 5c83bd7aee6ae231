-- What runs say while they run.

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

-- name: logs
-- Read what the runs of a job have logged, from some line on.
SELECT job_id, fence, attempt, line, text
FROM {logs} WHERE job_id = :job_id AND (fence, line) > (:fence, :line) ORDER BY fence, line
