-- The first tables. Instants are integer microseconds since 1970 in UTC.

CREATE TABLE {meta} (
    version integer PRIMARY KEY,
    name text NOT NULL,
    code text NOT NULL,
    applied_at integer NOT NULL
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
    -- Not used yet: keys, tags, deadlines, progress, callbacks and times to live, so that they come without a rewrite.
    unique_key text,
    key_until integer,
    tags text,
    parent text,
    callbacks text,
    expires_at integer,
    progress real,
    progress_note text,
    result_ttl integer,
    failure_ttl integer
);

-- What can be claimed: each queue and priority is an ordered range.
CREATE INDEX {jobs}_claim ON {jobs} (queue, priority, due_at, id) WHERE state = 'pending' AND waits = 0;

-- What each worker holds.
CREATE INDEX {jobs}_running ON {jobs} (worker) WHERE state = 'running';

-- One job per occurrence.
CREATE UNIQUE INDEX {jobs}_occurrence ON {jobs} (schedule, occurrence) WHERE schedule IS NOT NULL;

-- What a schedule has not finished.
CREATE INDEX {jobs}_live ON {jobs} (schedule)
WHERE schedule IS NOT NULL AND (state = 'pending' OR state = 'running');

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
    misfire_window integer NOT NULL,
    owner text NOT NULL,
    paused_at integer,
    paused_reason text,
    paused_by text,
    paused_until integer,
    fired_through integer NOT NULL,
    next_at integer,
    rev integer NOT NULL DEFAULT 1,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    options text
);

-- What fires next.
CREATE INDEX {schedules}_next ON {schedules} (next_at) WHERE next_at IS NOT NULL AND paused_at IS NULL;

CREATE TABLE {workers} (
    id text NOT NULL PRIMARY KEY,
    state text NOT NULL CHECK (state IN ('alive', 'dead', 'stopped')),
    host text NOT NULL,
    host_key text,
    pid integer NOT NULL,
    pid_started text,
    version text NOT NULL,
    queues text NOT NULL,
    slots integer NOT NULL,
    started_at integer NOT NULL,
    beat_at integer NOT NULL,
    lease_until integer NOT NULL,
    running integer NOT NULL DEFAULT 0,
    done integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    loop_lag integer NOT NULL DEFAULT 0,
    last_error text
);

CREATE TABLE {queues} (
    name text NOT NULL PRIMARY KEY,
    paused_at integer,
    paused_reason text,
    paused_by text,
    options text
);

CREATE TABLE {commands} (
    id text NOT NULL PRIMARY KEY,
    worker text,
    kind text NOT NULL,
    body text,
    created_at integer NOT NULL,
    created_by text,
    taken_at integer,
    done_at integer,
    outcome text
);

CREATE TABLE {audit} (
    id text NOT NULL PRIMARY KEY,
    at integer NOT NULL,
    who text,
    verb text NOT NULL,
    target text NOT NULL,
    detail text
);

INSERT INTO {meta} (version, name, code, applied_at)
VALUES (1, 'first', '{code}', CAST(strftime('%s', 'now') AS integer) * 1000000);
