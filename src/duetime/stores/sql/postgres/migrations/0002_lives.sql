-- What a job's whole life needs: keys, limits, logs, commands, and who a store is.

ALTER TABLE {jobs} ADD COLUMN keep_key bigint;
ALTER TABLE {jobs} ADD COLUMN key_held smallint NOT NULL DEFAULT 1;
ALTER TABLE {jobs} ADD COLUMN gate text COLLATE "C";

-- What can be claimed without asking a limit.
DROP INDEX {jobs}_claim;
CREATE INDEX {jobs}_claim ON {jobs} (queue, priority, due_at, id)
WHERE state = 'pending' AND waits = 0 AND gate IS NULL;

-- One holder for each key: a live job, or one that keeps it past its end.
CREATE UNIQUE INDEX {jobs}_key ON {jobs} (task, unique_key)
WHERE unique_key IS NOT NULL AND key_held = 1
  AND (state = 'pending' OR state = 'running' OR keep_key IS NOT NULL OR key_until IS NOT NULL);

-- What people look for: jobs that ended otherwise than well. Those that end well cost nothing here.
CREATE INDEX {jobs}_unsuccessful ON {jobs} (id)
WHERE state = 'failed' OR state = 'cancelled' OR state = 'skipped';

-- What waits at each gate, what has passed it, and when the next comes to one.
CREATE INDEX {jobs}_gated ON {jobs} (task, gate, queue, priority, due_at, id)
WHERE gate IS NOT NULL AND state = 'pending' AND waits = 0;
CREATE INDEX {jobs}_passed ON {jobs} (gate) WHERE gate IS NOT NULL AND state = 'running';
-- Every time is at least 0. That it is asked for keeps the planner from taking this index in place of the other.
CREATE INDEX {jobs}_gated_due ON {jobs} (due_at)
WHERE gate IS NOT NULL AND state = 'pending' AND waits = 0 AND due_at >= 0;

CREATE TABLE {gates} (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    task text COLLATE "C" NOT NULL,
    -- As the last worker that looked had them: for people, not for the claim.
    most integer,
    rate_count integer,
    rate_period bigint,
    -- The last starts, as a JSON array, for gates with a rate.
    starts text,
    seen_at bigint NOT NULL
);

ALTER TABLE {queues} ADD COLUMN most integer;
ALTER TABLE {queues} ADD COLUMN rate_count integer;
ALTER TABLE {queues} ADD COLUMN rate_period bigint;
ALTER TABLE {queues} ADD COLUMN starts text;

-- What runs have logged, in parts.
CREATE TABLE {logs} (
    job_id text COLLATE "C" NOT NULL,
    fence bigint NOT NULL,
    -- The number of the first line, from 1.
    line integer NOT NULL,
    attempt integer NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (job_id, fence, line)
);

ALTER TABLE {workers} ADD COLUMN tasks text NOT NULL DEFAULT '[]';
ALTER TABLE {workers} ADD COLUMN paused_at bigint;
ALTER TABLE {workers} ADD COLUMN paused_reason text;

-- Whether the worker was gone before it had answered.
ALTER TABLE {commands} ADD COLUMN dropped smallint NOT NULL DEFAULT 0;

-- What each worker has been told and has not done.
CREATE INDEX {commands}_open ON {commands} (worker) WHERE done_at IS NULL;

-- Tells one store from another.
ALTER TABLE {meta} ADD COLUMN store_id text;
UPDATE {meta} SET store_id = replace(gen_random_uuid()::text, '-', '') WHERE version = 1;

INSERT INTO {meta} (version, name, code, applied_at)
VALUES (2, 'lives', '{code}', (extract(epoch FROM now()) * 1000000)::bigint);
