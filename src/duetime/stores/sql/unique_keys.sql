-- Unique keys.

-- fragment: has_key
j.unique_key = r.unique_key AND j.unique_key IS NOT NULL AND j.key_held = 1
AND (j.finished_at IS NULL OR j.keep_key IS NOT NULL OR j.key_until IS NOT NULL)

-- name: key_holders
-- Tell the time, which requests are stored, and which jobs have their keys.
SELECT {now}, r.id, j.id, j.state, j.payload, j.finished_at, j.keep_key, j.key_until
FROM {each rows: id text, task text, unique_key text} AS r
JOIN {jobs} AS j ON j.id = r.id
UNION ALL
SELECT {now}, r.id, j.id, j.state, j.payload, j.finished_at, j.keep_key, j.key_until
FROM {each rows: id text, task text, unique_key text} AS r
{in_order} {jobs} AS j {index key} ON j.task = r.task AND {has_key}
{current}

-- name: replace_keyed
-- Turn jobs that wait under a key into others; they keep their ids and forget how often they were tried.
UPDATE {jobs} SET
    payload = r.payload, due_at = coalesce(r.due_at, {now} + r.delay), queue = r.queue, priority = r.priority,
    on_crash = r.on_crash, retries = r.retries, timeout = r.timeout, failures = 0, crashes = 0, blames = 0,
    error = NULL, traceback = NULL, error_type = NULL, fingerprint = NULL, reason = NULL, progress = NULL, progress_note = NULL,
    keep_key = r.keep_key, key_until = {now} + r.key_period, parent = r.parent, tags = r.tags,
    expires_at = coalesce(r.expires_at, coalesce(r.due_at, {now} + r.delay) + r.expires),
    callbacks = r.callbacks, result_ttl = r.result_ttl, failure_ttl = r.failure_ttl, gate = r.gate,
    headers = r.headers, secret = r.secret
FROM {each rows: new_job} AS r
WHERE {named} AND CASE WHEN {jobs}.state = 'pending' AND {jobs}.key_held = 1 THEN true ELSE false END
RETURNING {jobs}.id

-- name: free_keys
UPDATE {jobs} SET key_held = 0
FROM {each rows: id text, state text} AS r
WHERE {named} AND {jobs}.key_held = 1 AND {jobs}.state = r.state
