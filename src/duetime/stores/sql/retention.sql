-- What goes when its time is over.

-- name: prunable
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
    WHERE j.schedule = r.name AND (j.occurrence IS NULL) IS FALSE AND j.finished_at IS NOT NULL
    ORDER BY j.occurrence DESC LIMIT 1 OFFSET :others
)
FROM {each rows: name text} AS r

-- name: forget
UPDATE {jobs} SET result = NULL, result_error = coalesce(r.note, result_error), error = NULL, traceback = NULL
FROM {each rows: id text, note text} AS r
WHERE {named} AND {jobs}.finished_at IS NOT NULL

-- name: forget_attempts
UPDATE {attempts} SET error = NULL, traceback = NULL
FROM {each rows: id text} AS r
WHERE {attempts}.job_id = r.id
