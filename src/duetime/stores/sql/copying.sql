-- Whole records, for moving everything to another store. `model.store_copy` has the order of the columns.

-- fragment: whole_queue
-- A whole queue.
name text, paused_at int, paused_reason text, most int, rate_count int, rate_period int, starts text

-- fragment: whole_gate
-- A whole gate.
name text, task text, most int, rate_count int, rate_period int, starts text, seen_at int

-- fragment: whole_worker
-- A whole worker.
id text, state text, host text, host_key text, pid int, pid_started text, version text, queues text, tasks text,
declares text, fires int, slots int, started_at int, beat_at int, lease_until int, running int, done int, failed int,
loop_lag int, last_error text, paused_at int, paused_reason text

-- fragment: whole_command
-- A whole command.
worker text, id text, kind text, body text, created_at int, taken_at int, done_at int, outcome text, dropped int

-- fragment: whole_job
-- A whole job.
id text, task text, payload text, queue text, priority int, state text, due_at int, created_at int, started_at int,
finished_at int, worker text, fence int, failures int, crashes int, blames int, on_crash text, retries int,
timeout int, result text, result_error text, error text, traceback text, reason text, cancel_requested_at int,
schedule text, occurrence int, span_first int, span_count int, unique_key text, tags text, parent text,
callbacks text, expires_at int, result_ttl int, failure_ttl int, gate text, progress real, progress_note text,
claim_id text, cancel_reason text, keep_key int, key_until int, key_held int

-- fragment: whole_attempt
-- A whole try, but for its claim, which is not read any more.
job_id text, fence int, worker text, due_at int, started_at int, ended_at int, outcome text, error text,
traceback text

-- fragment: whole_log
-- A part of a log.
job_id text, fence int, line int, attempt int, text text

-- fragment: whole_schedule
-- A whole schedule.
name text, task text, payload text, trigger_spec text, declared text, owner text, queue text, priority int,
on_crash text, retries int, timeout int, options text, overlap text, overlap_limit int, misfire text,
misfire_window int, misfire_limit int, pause_after int, paused_at int, paused_reason text, paused_by text,
paused_until int, parked_at int, fired_through int, next_at int, made int, streak_from int, rev int, created_at int,
updated_at int

-- fragment: whole_entry
-- A whole entry.
id text, at int, who text, verb text, target text, detail text

-- name: whole_queues
-- Read a stretch of queues.
SELECT {names whole_queue} FROM {queues} WHERE name > :after AND name <= :until ORDER BY name LIMIT :limit

-- name: whole_gates
-- Read a stretch of gates.
SELECT {names whole_gate} FROM {gates} WHERE name > :after AND name <= :until ORDER BY name LIMIT :limit

-- name: whole_workers
-- Read a stretch of workers.
SELECT {names whole_worker} FROM {workers} WHERE id > :after AND id <= :until ORDER BY id LIMIT :limit

-- name: whole_commands
-- Read what a stretch of workers was told.
SELECT {names whole_command} FROM {commands} WHERE worker > :after AND worker <= :until ORDER BY worker, id

-- name: whole_jobs
-- Read a stretch of jobs.
SELECT {names whole_job} FROM {jobs} WHERE id > :after AND id <= :until ORDER BY id LIMIT :limit

-- name: whole_attempts
-- Read the tries of a stretch of jobs.
SELECT {names whole_attempt} FROM {attempts} WHERE job_id > :after AND job_id <= :until ORDER BY job_id, fence

-- name: whole_logs
-- Read the logs of a stretch of jobs.
SELECT {names whole_log} FROM {logs} WHERE job_id > :after AND job_id <= :until ORDER BY job_id, fence, line

-- name: whole_schedules
-- Read a stretch of schedules.
SELECT {names whole_schedule} FROM {schedules} WHERE name > :after AND name <= :until ORDER BY name LIMIT :limit

-- name: whole_entries
-- Read a stretch of entries.
SELECT {names whole_entry} FROM {audit} WHERE id > :after AND id <= :until ORDER BY id LIMIT :limit

-- name: put_queues
-- Store queues as they are.
INSERT INTO {queues} ({names whole_queue})
SELECT r.* FROM {each rows: whole_queue} AS r WHERE true ON CONFLICT DO NOTHING

-- name: put_gates
-- Store gates as they are.
INSERT INTO {gates} ({names whole_gate})
SELECT r.* FROM {each rows: whole_gate} AS r WHERE true ON CONFLICT DO NOTHING

-- name: put_workers
-- Store workers as they are.
INSERT INTO {workers} ({names whole_worker})
SELECT r.* FROM {each rows: whole_worker} AS r WHERE true ON CONFLICT DO NOTHING

-- name: put_commands
-- Store commands as they are.
INSERT INTO {commands} ({names whole_command})
SELECT r.* FROM {each rows: whole_command} AS r WHERE true ON CONFLICT DO NOTHING

-- name: put_jobs
-- Store jobs as they are.
INSERT INTO {jobs} ({names whole_job})
SELECT r.* FROM {each rows: whole_job} AS r WHERE true ON CONFLICT DO NOTHING

-- name: put_attempts
-- Store tries as they are.
INSERT INTO {attempts} ({names whole_attempt}, claim_id)
SELECT r.*, '' FROM {each rows: whole_attempt} AS r WHERE true ON CONFLICT DO NOTHING

-- name: put_logs
-- Store parts of logs as they are.
INSERT INTO {logs} ({names whole_log})
SELECT r.* FROM {each rows: whole_log} AS r WHERE true ON CONFLICT DO NOTHING

-- name: put_schedules
-- Store schedules as they are.
INSERT INTO {schedules} ({names whole_schedule})
SELECT r.* FROM {each rows: whole_schedule} AS r WHERE true ON CONFLICT DO NOTHING

-- name: put_entries
-- Store entries as they are.
INSERT INTO {audit} ({names whole_entry})
SELECT r.* FROM {each rows: whole_entry} AS r WHERE true ON CONFLICT DO NOTHING

-- name: remove_queues
-- Remove queues.
DELETE FROM {queues} WHERE name IN (SELECT r.name FROM {each rows: name text} AS r)

-- name: remove_gates
-- Remove gates.
DELETE FROM {gates} WHERE name IN (SELECT r.name FROM {each rows: name text} AS r)

-- name: remove_workers
-- Remove workers.
DELETE FROM {workers} WHERE id IN (SELECT r.id FROM {each rows: id text} AS r)

-- name: remove_commands
-- Remove what workers were told.
DELETE FROM {commands} WHERE worker IN (SELECT r.id FROM {each rows: id text} AS r)

-- name: remove_jobs
-- Remove jobs, whatever their state.
DELETE FROM {jobs} WHERE id IN (SELECT r.id FROM {each rows: id text} AS r)

-- name: remove_schedules
-- Remove schedules, and leave their jobs alone.
DELETE FROM {schedules} WHERE name IN (SELECT r.name FROM {each rows: name text} AS r)

-- name: remove_entries
-- Remove entries.
DELETE FROM {audit} WHERE id IN (SELECT r.id FROM {each rows: id text} AS r)
