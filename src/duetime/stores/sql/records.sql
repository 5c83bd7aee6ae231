-- Jobs, for people.

-- fragment: registry
-- Where a job is, as `model.queues.registry_of` tells it.
CASE WHEN state = 'succeeded' THEN 'finished' WHEN state = 'skipped' THEN 'skipped'
     WHEN state = 'failed' OR (state = 'cancelled' AND started_at IS NOT NULL) THEN 'failed'
     WHEN state = 'cancelled' THEN 'cancelled'
     WHEN state = 'running' AND started_at IS NOT NULL THEN 'active'
     WHEN state = 'pending' AND due_at <= {now} THEN 'queued' ELSE 'scheduled' END

-- fragment: on_page
-- True for a job that is not too new for the page, nor too old for what is asked for: ids rise with time.
id < CAST(:before AS text) AND id >= CAST(:from_id AS text)

-- fragment: wanted
-- True for a job of the list that was asked for. It is hidden from the planner, which would take this many
-- conditions as a sign that next to nothing is found.
CASE WHEN (CAST(:since AS bigint) IS NULL OR created_at >= CAST(:since AS bigint))
      AND (CAST(:task AS text) IS NULL OR task = CAST(:task AS text))
      AND (CAST(:until AS bigint) IS NULL OR created_at < CAST(:until AS bigint))
      AND (CAST(:states AS text) IS NULL OR replace(CAST(:states AS text), state, '') <> CAST(:states AS text))
      AND (CAST(:queue AS text) IS NULL OR queue = CAST(:queue AS text))
      AND (CAST(:schedule AS text) IS NULL OR schedule = CAST(:schedule AS text))
      AND (CAST(:kind AS text) IS NULL OR CASE WHEN schedule IS NULL THEN 'one_off' ELSE 'scheduled' END = CAST(:kind AS text))
      AND (CAST(:key AS text) IS NULL OR unique_key = CAST(:key AS text))
      AND (CAST(:tag AS text) IS NULL OR replace(tags, CAST(:tag AS text), '') <> tags)
      AND (CAST(:registry AS text) IS NULL OR CAST(:registry AS text) = {registry})
THEN true ELSE false END

-- name: get
SELECT {now}, {names stored_job} FROM {jobs} WHERE id IN (SELECT r.id FROM {each rows: id text} AS r)

-- name: find
-- Read one page of jobs, newest first, by a walk along the primary key.
SELECT {now}, {names stored_job} FROM {jobs} WHERE {on_page} AND {wanted} ORDER BY id DESC LIMIT :limit

-- name: find_unsuccessful
SELECT {now}, {names stored_job} FROM {jobs}
WHERE finished_at IS NOT NULL AND state <> 'succeeded' AND {on_page} AND {wanted}
ORDER BY id DESC LIMIT :limit

-- name: reach
-- Tell how far one gets by looking at so many jobs.
SELECT min(r.id), count(*) FROM (SELECT id FROM {jobs} WHERE {on_page} ORDER BY id DESC LIMIT :look_at) AS r

-- name: reach_unsuccessful
SELECT min(r.id), count(*) FROM (
    SELECT id FROM {jobs} WHERE finished_at IS NOT NULL AND state <> 'succeeded' AND {on_page}
    ORDER BY id DESC LIMIT :look_at
) AS r

-- name: find_newest
SELECT {now}, {names stored_job}
FROM (SELECT * FROM {jobs} WHERE {on_page} ORDER BY id DESC LIMIT :newest) AS newest
WHERE {wanted} ORDER BY id DESC LIMIT :limit

-- name: find_running
-- The same among the jobs that workers have, which are few.
SELECT {now}, {names stored_job} FROM {jobs} {index running}
WHERE state = 'running' AND CASE WHEN {on_page} THEN {wanted} ELSE false END
ORDER BY coalesce(id, '') DESC LIMIT :limit

-- name: find_live
-- The same among the jobs that have not ended, which may be few among many. Conditions and order of ids are hidden
-- from the planner, which would walk along the primary key for them. Nothing waits for other jobs yet.
SELECT {now}, {names stored_job} FROM (
    SELECT * FROM {jobs} {index running} WHERE state = 'running'
    UNION ALL
    SELECT * FROM {jobs} {index claim} WHERE state = 'pending' AND waits = 0 AND gate IS NULL
    UNION ALL
    SELECT j.* FROM {jobs} AS j {index gated} WHERE {at_gate}
) AS live
WHERE CASE WHEN {on_page} THEN {wanted} ELSE false END
ORDER BY coalesce(id, '') DESC LIMIT :limit

-- name: count_live
-- Count them, up to a bound for each kind.
SELECT count(*) FROM (
    SELECT 1 AS n FROM (SELECT 1 FROM {jobs} {index running} WHERE state = 'running' LIMIT :look_at) AS a
    UNION ALL
    SELECT 1 FROM (
        SELECT 1 FROM {jobs} {index claim} WHERE state = 'pending' AND waits = 0 AND gate IS NULL LIMIT :look_at
    ) AS b
    UNION ALL
    SELECT 1 FROM (SELECT 1 FROM {jobs} AS j {index gated} WHERE {at_gate} LIMIT :look_at) AS c
) AS live

-- name: count_of_schedule
SELECT count(*) FROM (
    SELECT 1 FROM {jobs} WHERE schedule = CAST(:schedule AS text) AND schedule IS NOT NULL LIMIT :look_at
) AS found

-- name: find_of_schedule
SELECT {now}, {names stored_job} FROM {jobs}
WHERE schedule = CAST(:schedule AS text) AND schedule IS NOT NULL
  AND CASE WHEN {on_page} THEN {wanted} ELSE false END
ORDER BY coalesce(id, '') DESC LIMIT :limit

-- name: attempts
SELECT {names whole_attempts} FROM {attempts} WHERE job_id = :job_id ORDER BY fence

-- name: upcoming
SELECT {now}, {names stored_job}
FROM (SELECT id FROM {jobs} WHERE state = 'pending' AND waits = 0 ORDER BY due_at, id LIMIT :limit) AS first
JOIN {jobs} USING (id) ORDER BY due_at, id

-- name: logs
SELECT job_id, fence, attempt, line, text
FROM {logs} WHERE job_id = :job_id AND (fence, line) > (:fence, :line) ORDER BY fence, line
