-- Whole records, for moving everything to another store. `model.store_copy` has the order of the columns. The first three
-- fragments become statements for each of the tables.

-- fragment: read_whole
SELECT {names whole_$table} FROM {$table} WHERE $key > :after AND $key <= :until ORDER BY $order LIMIT :limit

-- fragment: put_whole
INSERT INTO {$table} ({names whole_$table})
SELECT r.* FROM {each rows: whole_$table} AS r WHERE true ON CONFLICT DO NOTHING

-- fragment: remove_whole
DELETE FROM {$table} WHERE $key IN (SELECT r.id FROM {each rows: id text} AS r)

-- fragment: whole_queues
name text, paused_at int, paused_reason text, most int, rate_count int, rate_period int, starts text

-- fragment: whole_gates
name text, task text, most int, rate_count int, rate_period int, starts text, seen_at int

-- fragment: whole_workers
id text, state text, host text, host_key text, pid int, pid_started text, version text, queues text, tasks text,
declares text, fires int, name text, slots int, started_at int, beat_at int, lease_until int, running int, done int, failed int,
loop_lag int, last_error text, paused_at int, paused_reason text

-- fragment: whole_commands
worker text, id text, kind text, body text, created_at int, taken_at int, done_at int, outcome text, dropped int

-- fragment: stored_job
id text, task text, payload text, queue text, priority int, state text, due_at int, created_at int, started_at int,
finished_at int, worker text, fence int, failures int, crashes int, blames int, on_crash text, retries int,
timeout int, result text, result_error text, error text, traceback text, reason text, cancel_requested_at int,
schedule text, occurrence int, span_first int, span_count int, unique_key text, tags text, parent text,
callbacks text, expires_at int, result_ttl int, failure_ttl int, headers text, gate text, error_type text,
fingerprint text, secret text, progress real, progress_note text

-- fragment: whole_jobs
{stored_job}, claim_id text, cancel_reason text, keep_key int, key_until int, key_held int

-- fragment: whole_attempts
job_id text, fence int, worker text, due_at int, started_at int, ended_at int, outcome text, error text,
traceback text, error_type text, fingerprint text

-- fragment: whole_logs
job_id text, fence int, line int, attempt int, text text

-- fragment: new_schedule
name text, task text, payload text, trigger_spec text, declared text, owner text, queue text, priority int,
on_crash text, retries int, timeout int, options text, overlap text, overlap_limit int, misfire text,
misfire_window int, misfire_limit int, pause_after int, paused_at int, paused_reason text, paused_by text,
paused_until int, parked_at int, fired_through int, next_at int, made int, streak_from int

-- fragment: whole_schedules
{new_schedule}, rev int, created_at int, updated_at int

-- fragment: whole_audit
id text, at int, who text, verb text, target text, detail text

-- fragment: whole_statistics
id text, kind text, grain text, name text, start int, body text
