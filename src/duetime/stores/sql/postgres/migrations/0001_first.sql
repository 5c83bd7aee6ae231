-- The first tables. Instants are integer microseconds since 1970 in UTC.

CREATE TABLE {meta} (
    version bigint PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    code text NOT NULL,
    applied_at bigint NOT NULL
);

CREATE TABLE {jobs} (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    task text COLLATE "C" NOT NULL,
    payload text NOT NULL,
    queue text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    state text NOT NULL CHECK (state IN ('pending', 'running', 'succeeded', 'failed', 'cancelled', 'skipped')),
    due_at bigint NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    worker text COLLATE "C",
    claim_id text COLLATE "C",
    fence bigint NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    blames integer NOT NULL DEFAULT 0,
    on_crash text NOT NULL,
    retries integer,
    timeout bigint,
    result text,
    result_error text,
    error text,
    traceback text,
    reason text,
    cancel_requested_at bigint,
    cancel_reason text,
    schedule text COLLATE "C",
    occurrence bigint,
    span_first bigint,
    span_count integer NOT NULL DEFAULT 1,
    waits integer NOT NULL DEFAULT 0,
    -- Not used yet: keys, tags, deadlines, progress, callbacks and times to live, so that they come without a rewrite.
    unique_key text COLLATE "C",
    key_until bigint,
    tags text,
    parent text COLLATE "C",
    callbacks text,
    expires_at bigint,
    progress real,
    progress_note text,
    result_ttl bigint,
    failure_ttl bigint
) WITH (
    -- Room for new versions of a row on its own page, and a vacuum that comes before the dead ones are in the way.
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0
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
    job_id text COLLATE "C" NOT NULL,
    fence bigint NOT NULL,
    claim_id text COLLATE "C" NOT NULL,
    worker text COLLATE "C",
    due_at bigint NOT NULL,
    started_at bigint,
    ended_at bigint NOT NULL,
    outcome text NOT NULL,
    error text,
    traceback text,
    PRIMARY KEY (job_id, fence)
);

CREATE TABLE {schedules} (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    task text COLLATE "C" NOT NULL,
    payload text NOT NULL,
    trigger_spec text NOT NULL,
    declared text NOT NULL,
    queue text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    on_crash text NOT NULL,
    retries integer,
    timeout bigint,
    overlap text NOT NULL,
    misfire_window bigint NOT NULL,
    owner text NOT NULL,
    paused_at bigint,
    paused_reason text,
    paused_by text,
    paused_until bigint,
    fired_through bigint NOT NULL,
    next_at bigint,
    rev integer NOT NULL DEFAULT 1,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    options text
);

-- What fires next.
CREATE INDEX {schedules}_next ON {schedules} (next_at) WHERE next_at IS NOT NULL AND paused_at IS NULL;

CREATE TABLE {workers} (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    state text NOT NULL CHECK (state IN ('alive', 'dead', 'stopped')),
    host text NOT NULL,
    host_key text,
    pid bigint NOT NULL,
    pid_started text,
    version text NOT NULL,
    queues text NOT NULL,
    slots integer NOT NULL,
    started_at bigint NOT NULL,
    beat_at bigint NOT NULL,
    lease_until bigint NOT NULL,
    running integer NOT NULL DEFAULT 0,
    done bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    loop_lag bigint NOT NULL DEFAULT 0,
    last_error text
) WITH (fillfactor = 50);

CREATE TABLE {queues} (
    name text COLLATE "C" NOT NULL PRIMARY KEY,
    paused_at bigint,
    paused_reason text,
    paused_by text,
    options text
);

CREATE TABLE {commands} (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    worker text COLLATE "C",
    kind text NOT NULL,
    body text,
    created_at bigint NOT NULL,
    created_by text,
    taken_at bigint,
    done_at bigint,
    outcome text
);

CREATE TABLE {audit} (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    at bigint NOT NULL,
    who text,
    verb text NOT NULL,
    target text NOT NULL,
    detail text
);

INSERT INTO {meta} (version, name, code, applied_at)
VALUES (1, 'first', '{code}', (extract(epoch FROM statement_timestamp()) * 1000000)::bigint);
