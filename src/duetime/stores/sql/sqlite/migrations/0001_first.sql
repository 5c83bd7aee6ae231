-- The first tables. Instants are integer microseconds since 1970 in UTC.

CREATE TABLE {meta} (
    version integer PRIMARY KEY,
    name text NOT NULL,
    code text NOT NULL,
    applied_at integer NOT NULL,
    -- Tells one store from another.
    store_id text
);

CREATE TABLE {jobs} (
    id text NOT NULL PRIMARY KEY,
    task text NOT NULL,
    payload text NOT NULL,
    queue text NOT NULL,
    priority integer NOT NULL,
    -- In so many words, because SQLite builds a table for an IN of more than two at every change of a row.
    state text NOT NULL CHECK (
        state = 'pending' OR state = 'running' OR state = 'succeeded'
        OR state = 'failed' OR state = 'cancelled' OR state = 'skipped'
    ),
    due_at integer NOT NULL,
    created_at integer NOT NULL,
    started_at integer,
    finished_at integer,
    worker text,
    claim_id text,
    fence integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    blames integer NOT NULL DEFAULT 0,
    on_crash text NOT NULL,
    retries integer,
    timeout integer,
    result text,
    result_error text,
    error text,
    traceback text,
    reason text,
    cancel_requested_at integer,
    cancel_reason text,
    schedule text,
    occurrence integer,
    span_first integer,
    span_count integer NOT NULL DEFAULT 1,
    waits integer NOT NULL DEFAULT 0,
    unique_key text,
    keep_key integer,
    key_until integer,
    key_held integer NOT NULL DEFAULT 1,
    tags text,
    parent text,
    callbacks text,
    expires_at integer,
    progress real,
    progress_note text,
    result_ttl integer,
    failure_ttl integer,
    gate text
);

-- What can be claimed without asking a limit: each queue and priority is an ordered range.
CREATE INDEX {jobs}_claim ON {jobs} (queue, priority, due_at, id)
WHERE state = 'pending' AND waits = 0 AND gate IS NULL;

-- What each worker holds.
CREATE INDEX {jobs}_running ON {jobs} (worker) WHERE state = 'running';

-- What a schedule has made: the jobs in each state are an ordered range.
CREATE INDEX {jobs}_history ON {jobs} (schedule, state, occurrence) WHERE schedule IS NOT NULL;

-- One job per occurrence. The condition is one that the planner does not conclude from another, so that it takes this index
-- only where it is asked for, and not in place of the one above.
CREATE UNIQUE INDEX {jobs}_occurrence ON {jobs} (schedule, occurrence) WHERE (occurrence IS NULL) IS FALSE;

-- One holder for each key: a live job, or one that keeps it past its end.
CREATE UNIQUE INDEX {jobs}_key ON {jobs} (task, unique_key)
WHERE unique_key IS NOT NULL AND key_held = 1
  AND (finished_at IS NULL OR keep_key IS NOT NULL OR key_until IS NOT NULL);

-- What people look for: jobs that ended otherwise than well. Those that end well cost nothing here.
CREATE INDEX {jobs}_unsuccessful ON {jobs} (id) WHERE finished_at IS NOT NULL AND state <> 'succeeded';

-- What waits at each gate, what has passed it, and when the next comes to one.
CREATE INDEX {jobs}_gated ON {jobs} (task, gate, queue, priority, due_at, id)
WHERE gate IS NOT NULL AND state = 'pending' AND waits = 0;
CREATE INDEX {jobs}_passed ON {jobs} (gate) WHERE gate IS NOT NULL AND state = 'running';
CREATE INDEX {jobs}_gated_due ON {jobs} (due_at) WHERE gate IS NOT NULL AND state = 'pending' AND waits = 0;

CREATE TABLE {attempts} (
    job_id text NOT NULL,
    fence integer NOT NULL,
    claim_id text NOT NULL,
    worker text,
    due_at integer NOT NULL,
    started_at integer,
    ended_at integer NOT NULL,
    outcome text NOT NULL,
    error text,
    traceback text,
    PRIMARY KEY (job_id, fence)
) WITHOUT ROWID;

CREATE TABLE {schedules} (
    name text NOT NULL PRIMARY KEY,
    task text NOT NULL,
    payload text NOT NULL,
    trigger_spec text NOT NULL,
    declared text NOT NULL,
    queue text NOT NULL,
    priority integer NOT NULL,
    on_crash text NOT NULL,
    retries integer,
    timeout integer,
    overlap text NOT NULL,
    overlap_limit integer,
    misfire text NOT NULL DEFAULT 'latest',
    misfire_window integer NOT NULL,
    misfire_limit integer NOT NULL DEFAULT 100,
    pause_after integer,
    -- Failures before this instant do not count towards a pause.
    streak_from integer NOT NULL DEFAULT 0,
    owner text NOT NULL,
    paused_at integer,
    paused_reason text,
    paused_by text,
    paused_until integer,
    -- Since when no code declares it any more.
    parked_at integer,
    fired_through integer NOT NULL,
    next_at integer,
    -- How many jobs it has made.
    made integer NOT NULL DEFAULT 0,
    rev integer NOT NULL DEFAULT 1,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    options text
);

-- What fires next; neither what is paused nor what is parked.
CREATE INDEX {schedules}_next ON {schedules} (next_at)
WHERE next_at IS NOT NULL AND paused_at IS NULL AND parked_at IS NULL;

-- What resumes by itself.
CREATE INDEX {schedules}_until ON {schedules} (paused_until)
WHERE paused_until IS NOT NULL AND paused_at IS NOT NULL AND parked_at IS NULL;

CREATE TABLE {workers} (
    id text NOT NULL PRIMARY KEY,
    state text NOT NULL CHECK (state IN ('alive', 'dead', 'stopped')),
    host text NOT NULL,
    host_key text,
    pid integer NOT NULL,
    pid_started text,
    version text NOT NULL,
    queues text NOT NULL,
    tasks text NOT NULL DEFAULT '[]',
    -- Which schedules its code declares, and whether it fires any.
    declares text,
    fires integer NOT NULL DEFAULT 0,
    slots integer NOT NULL,
    started_at integer NOT NULL,
    beat_at integer NOT NULL,
    lease_until integer NOT NULL,
    running integer NOT NULL DEFAULT 0,
    done integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    loop_lag integer NOT NULL DEFAULT 0,
    last_error text,
    paused_at integer,
    paused_reason text
);

CREATE TABLE {queues} (
    name text NOT NULL PRIMARY KEY,
    paused_at integer,
    paused_reason text,
    paused_by text,
    most integer,
    rate_count integer,
    rate_period integer,
    starts text,
    options text
);

-- Where jobs wait for limits; the limits as the last worker that looked had them, for people, not for the claim.
CREATE TABLE {gates} (
    name text NOT NULL PRIMARY KEY,
    task text NOT NULL,
    most integer,
    rate_count integer,
    rate_period integer,
    -- The last starts, as a JSON array, for gates with a rate.
    starts text,
    seen_at integer NOT NULL
);

-- What runs have logged, in parts.
CREATE TABLE {logs} (
    job_id text NOT NULL,
    fence integer NOT NULL,
    -- The number of the first line, from 1.
    line integer NOT NULL,
    attempt integer NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (job_id, fence, line)
) WITHOUT ROWID;

CREATE TABLE {commands} (
    id text NOT NULL PRIMARY KEY,
    worker text,
    kind text NOT NULL,
    body text,
    created_at integer NOT NULL,
    created_by text,
    taken_at integer,
    done_at integer,
    outcome text,
    -- Whether the worker was gone before it had answered.
    dropped integer NOT NULL DEFAULT 0
);

-- What each worker has been told and has not done.
CREATE INDEX {commands}_open ON {commands} (worker) WHERE done_at IS NULL;

CREATE TABLE {audit} (
    id text NOT NULL PRIMARY KEY,
    at integer NOT NULL,
    who text,
    verb text NOT NULL,
    target text NOT NULL,
    detail text
);

-- What happened to each schedule, in order.
CREATE INDEX {audit}_target ON {audit} (target, at, id);

INSERT INTO {meta} (version, name, code, applied_at, store_id)
VALUES (1, 'first', '{code}', CAST(strftime('%s', 'now') AS integer) * 1000000, lower(hex(randomblob(16))));
