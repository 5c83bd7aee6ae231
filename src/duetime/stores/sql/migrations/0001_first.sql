-- The first tables. Instants are integer microseconds since 1970 in UTC.

CREATE TABLE {meta} (
    version integer PRIMARY KEY,
    name {key_text} NOT NULL,
    code text NOT NULL,
    applied_at bigint NOT NULL,
    -- Tells one store from another.
    store_id text
);

CREATE TABLE {jobs} (
    id {job_id},
    task {key_text} NOT NULL,
    payload text NOT NULL,
    queue {key_text} NOT NULL,
    priority smallint NOT NULL,
    state text NOT NULL CHECK ({known_state}),
    due_at bigint NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    worker {key_text},
    claim_id {key_text},
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
    schedule {key_text},
    occurrence bigint,
    span_first bigint,
    span_count integer NOT NULL DEFAULT 1,
    waits integer NOT NULL DEFAULT 0,
    unique_key {key_text},
    keep_key bigint,
    key_until bigint,
    key_held smallint NOT NULL DEFAULT 1,
    tags text,
    parent {key_text},
    callbacks text,
    expires_at bigint,
    progress real,
    progress_note text,
    result_ttl bigint,
    failure_ttl bigint,
    gate {key_text}
) {job_storage};

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
-- Every time is at least 0. That it is asked for keeps the planner from taking this index in place of the other.
CREATE INDEX {jobs}_gated_due ON {jobs} (due_at)
WHERE gate IS NOT NULL AND state = 'pending' AND waits = 0 AND due_at >= 0;

CREATE TABLE {attempts} (
    job_id {key_text} NOT NULL,
    fence bigint NOT NULL,
    worker {key_text},
    due_at bigint NOT NULL,
    started_at bigint,
    ended_at bigint NOT NULL,
    outcome text NOT NULL,
    error text,
    traceback text,
    PRIMARY KEY (job_id, fence)
) {key_storage};

CREATE TABLE {schedules} (
    name {key_text} NOT NULL PRIMARY KEY,
    task {key_text} NOT NULL,
    payload text NOT NULL,
    trigger_spec text NOT NULL,
    declared text NOT NULL,
    queue {key_text} NOT NULL,
    priority smallint NOT NULL,
    on_crash text NOT NULL,
    retries integer,
    timeout bigint,
    overlap text NOT NULL,
    overlap_limit integer,
    misfire text NOT NULL DEFAULT 'latest',
    misfire_window bigint NOT NULL,
    misfire_limit integer NOT NULL DEFAULT 100,
    pause_after integer,
    -- Failures before this instant do not count towards a pause.
    streak_from bigint NOT NULL DEFAULT 0,
    owner text NOT NULL,
    paused_at bigint,
    paused_reason text,
    paused_by text,
    paused_until bigint,
    -- Since when no code declares it any more.
    parked_at bigint,
    fired_through bigint NOT NULL,
    next_at bigint,
    -- How many jobs it has made.
    made bigint NOT NULL DEFAULT 0,
    rev integer NOT NULL DEFAULT 1,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    options text
);

-- What fires next; neither what is paused nor what is parked.
CREATE INDEX {schedules}_next ON {schedules} (next_at)
WHERE next_at IS NOT NULL AND paused_at IS NULL AND parked_at IS NULL;

-- What resumes by itself.
CREATE INDEX {schedules}_until ON {schedules} (paused_until)
WHERE paused_until IS NOT NULL AND paused_at IS NOT NULL AND parked_at IS NULL;

CREATE TABLE {workers} (
    id {key_text} NOT NULL PRIMARY KEY,
    state text NOT NULL CHECK (state IN ('alive', 'dead', 'stopped')),
    host text NOT NULL,
    host_key text,
    pid bigint NOT NULL,
    pid_started text,
    version text NOT NULL,
    queues text NOT NULL,
    tasks text NOT NULL DEFAULT '[]',
    -- Which schedules its code declares, and whether it fires any.
    declares text,
    fires smallint NOT NULL DEFAULT 0,
    slots integer NOT NULL,
    started_at bigint NOT NULL,
    beat_at bigint NOT NULL,
    lease_until bigint NOT NULL,
    running integer NOT NULL DEFAULT 0,
    done bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    loop_lag bigint NOT NULL DEFAULT 0,
    last_error text,
    paused_at bigint,
    paused_reason text
) {worker_storage};

CREATE TABLE {queues} (
    name {key_text} NOT NULL PRIMARY KEY,
    paused_at bigint,
    paused_reason text,
    most integer,
    rate_count integer,
    rate_period bigint,
    starts text
);

-- Where jobs wait for limits; the limits as the last worker that looked had them, for people, not for the claim.
CREATE TABLE {gates} (
    name {key_text} NOT NULL PRIMARY KEY,
    task {key_text} NOT NULL,
    most integer,
    rate_count integer,
    rate_period bigint,
    -- The last starts, as a JSON array, for gates with a rate.
    starts text,
    seen_at bigint NOT NULL
);

-- What runs have logged, in parts.
CREATE TABLE {logs} (
    job_id {key_text} NOT NULL,
    fence bigint NOT NULL,
    -- The number of the first line, from 1.
    line integer NOT NULL,
    attempt integer NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (job_id, fence, line)
) {key_storage};

CREATE TABLE {commands} (
    id {key_text} NOT NULL PRIMARY KEY,
    worker {key_text},
    kind text NOT NULL,
    body text,
    created_at bigint NOT NULL,
    taken_at bigint,
    done_at bigint,
    outcome text,
    -- Whether the worker was gone before it had answered.
    dropped smallint NOT NULL DEFAULT 0
);

-- What each worker has been told and has not done.
CREATE INDEX {commands}_open ON {commands} (worker) WHERE done_at IS NULL;

CREATE TABLE {audit} (
    id {key_text} NOT NULL PRIMARY KEY,
    at bigint NOT NULL,
    who text,
    verb text NOT NULL,
    target text NOT NULL,
    detail text
);

-- What happened to each schedule, in order.
CREATE INDEX {audit}_target ON {audit} (target, at, id);

INSERT INTO {meta} (version, name, code, applied_at, store_id)
VALUES (1, 'first', '{code}', {new_store});
