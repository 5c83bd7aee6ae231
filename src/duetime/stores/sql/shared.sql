-- The fragments that statements share, and the statements about a store as a whole. All .sql files are in the words that
-- the databases have in common:
--
-- `{jobs}` and its like are table names. `{each rows: id text, fence int}` is a batch: one JSON parameter,
-- an array of arrays, read as a table with these columns; `{each rows: new_job}` has the columns of a fragment,
-- `{names new_job}` are their names, and `{names new_job: r.$}` is a text with each name for `$`. `{now}` is the store's
-- clock. A dialect replaces a whole statement only where its shape differs. An UPDATE sets no column before another that
-- reads it: some databases would read what was set.

-- fragment: claim_columns
-- What a worker needs to run a job. No IS NULL here: SQLite 3.40 answers it wrongly in RETURNING.
{jobs}.id, {jobs}.fence, {jobs}.claim_id, {jobs}.task, {jobs}.payload, {jobs}.queue, {jobs}.priority,
{jobs}.due_at, {now_once}, {jobs}.failures, {jobs}.crashes, {jobs}.blames, {jobs}.on_crash, {jobs}.retries,
{jobs}.timeout, {jobs}.schedule, {jobs}.occurrence, {jobs}.cancel_requested_at, {jobs}.unique_key, {jobs}.tags,
{jobs}.parent, {jobs}.callbacks, {jobs}.expires_at, {jobs}.result_ttl, {jobs}.failure_ttl, {jobs}.headers,
{jobs}.gate

-- fragment: named
{jobs}.id = r.id

-- fragment: held
-- True for a row whose claim still holds. The state is hidden from the planner: with statistics taken while
-- nothing ran it would believe that no row matches, and read the batch once per row.
{jobs}.fence = r.fence AND {jobs}.claim_id = r.claim_id
AND CASE WHEN {jobs}.state = 'running' THEN true ELSE false END

-- fragment: cancelled_instead
-- True for a run that would go back while its cancellation is requested: the request comes first, and the job is cancelled.
(r.state = 'pending' AND cancel_requested_at IS NOT NULL)

-- fragment: goes_back
(r.state = 'pending' AND cancel_requested_at IS NULL)

-- fragment: priorities
priorities (n) AS (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9))

-- fragment: worker_lives
EXISTS (SELECT 1 FROM {workers} AS lw WHERE lw.id = :worker AND lw.state = 'alive')

-- fragment: known_task
j.task IN (SELECT t.name FROM {each tasks: name text} AS t)

-- fragment: claimable
-- What the claim index holds.
j.state = 'pending' AND j.waits = 0 AND j.gate IS NULL

-- fragment: at_gate
-- What the indexes of gates hold.
j.state = 'pending' AND j.waits = 0 AND j.gate IS NOT NULL

-- fragment: our_tables
-- All names of tables, though not every database has one for hints, or for locks.
'{jobs}', '{attempts}', '{schedules}', '{workers}', '{queues}', '{gates}', '{logs}', '{commands}', '{audit}', '{tasks}', '{meta}',
'{credentials}', '{statistics}', '{hints}', '{locks}'

-- name: count_rows
-- Python fills in which.
SELECT count(*) FROM $table

-- name: drop_table
DROP TABLE $table

-- name: clock
SELECT {now}

-- name: migration_lock
-- Nothing to do, where the transaction is the only writer already or each statement of a migration can be repeated.
SELECT 1

-- fragment: moved
-- That the work goes on elsewhere, noted as the version that no tables have.
(SELECT m.code FROM {meta} AS m WHERE m.version = 0)

-- name: schema_version
SELECT coalesce(max(version), 0), {moved} FROM {meta}

-- name: note_moved
INSERT INTO {meta} (version, name, code, applied_at) VALUES (0, 'moved', :note, {now})

-- name: forget_moved
DELETE FROM {meta} WHERE version = 0

-- name: store_id
SELECT store_id FROM {meta} WHERE version = 1
