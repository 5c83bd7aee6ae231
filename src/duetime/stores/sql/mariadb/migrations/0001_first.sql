-- The first tables. Instants are integer microseconds since 1970 in UTC. What is told of columns is in the file that other
-- databases share; only columns that they lack have their own.
--
-- Here each statement commits by itself, so that one that is run again must find its work done; the version comes last.
-- There are no partial indexes: what others leave out is told apart by the first columns. InnoDB puts the primary key
-- behind each index.

CREATE TABLE IF NOT EXISTS {jobs} (
    id varchar(64) NOT NULL PRIMARY KEY,
    task varchar(200) NOT NULL,
    payload longtext NOT NULL,
    queue varchar(200) NOT NULL,
    priority smallint NOT NULL,
    state varchar(9) NOT NULL CHECK (state IN ('pending', 'running', 'succeeded', 'failed', 'cancelled', 'skipped')),
    due_at bigint NOT NULL,
    created_at bigint NOT NULL,
    started_at bigint,
    finished_at bigint,
    worker varchar(200),
    claim_id varchar(64),
    fence bigint NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    blames integer NOT NULL DEFAULT 0,
    on_crash varchar(20) NOT NULL,
    retries integer,
    timeout bigint,
    result longtext,
    result_error longtext,
    error longtext,
    traceback longtext,
    reason longtext,
    cancel_requested_at bigint,
    cancel_reason longtext,
    schedule varchar(200),
    occurrence bigint,
    span_first bigint,
    span_count integer NOT NULL DEFAULT 1,
    waits integer NOT NULL DEFAULT 0,
    unique_key varchar(500),
    keep_key bigint,
    key_until bigint,
    key_held smallint NOT NULL DEFAULT 1,
    tags longtext,
    parent varchar(64),
    callbacks longtext,
    expires_at bigint,
    progress double,
    progress_note longtext,
    result_ttl bigint,
    failure_ttl bigint,
    headers longtext,
    gate varchar(350),
    error_type varchar(200),
    fingerprint varchar(16),
    secret longtext,
    -- No column of an index can say that another is not NULL.
    gated tinyint AS (CASE WHEN state = 'pending' AND waits = 0 AND gate IS NOT NULL THEN 1 END) VIRTUAL
        COMMENT 'Whether it waits at a gate.',
    held_key varchar(500) AS (CASE WHEN key_held = 1 AND (finished_at IS NULL OR keep_key IS NOT NULL
                                                          OR key_until IS NOT NULL) THEN unique_key END) VIRTUAL
        COMMENT 'The key, for as long as no other job may have it.',
    -- What can be claimed without asking a limit: each queue and priority is an ordered range.
    KEY {jobs}_claim (state, waits, gate, queue, priority, due_at),
    -- What each worker holds.
    KEY {jobs}_running (state, worker),
    -- What has passed each gate.
    KEY {jobs}_passed (state, gate),
    -- One job per occurrence.
    UNIQUE KEY {jobs}_occurrence (schedule, occurrence),
    -- What a schedule has made: the jobs in each state are an ordered range.
    KEY {jobs}_history (schedule, state, occurrence),
    -- One holder for each key.
    UNIQUE KEY {jobs}_key (task, held_key),
    -- What waits at each gate, and when the next comes to one.
    KEY {jobs}_gated (gated, task, gate, queue, priority, due_at),
    KEY {jobs}_gated_due (gated, due_at)
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS {attempts} (
    job_id varchar(64) NOT NULL,
    fence bigint NOT NULL,
    worker varchar(200),
    due_at bigint NOT NULL,
    started_at bigint,
    ended_at bigint NOT NULL,
    outcome varchar(20) NOT NULL,
    error longtext,
    traceback longtext,
    error_type varchar(200),
    fingerprint varchar(16),
    PRIMARY KEY (job_id, fence)
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- What runs have logged, in parts.
CREATE TABLE IF NOT EXISTS {logs} (
    job_id varchar(64) NOT NULL,
    fence bigint NOT NULL,
    line integer NOT NULL,
    attempt integer NOT NULL,
    text longtext NOT NULL,
    PRIMARY KEY (job_id, fence, line)
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS {schedules} (
    name varchar(200) NOT NULL PRIMARY KEY,
    task varchar(200) NOT NULL,
    payload longtext NOT NULL,
    trigger_spec longtext NOT NULL,
    declared longtext NOT NULL,
    owner varchar(200) NOT NULL,
    queue varchar(200) NOT NULL,
    priority smallint NOT NULL,
    on_crash varchar(20) NOT NULL,
    retries integer,
    timeout bigint,
    options longtext,
    overlap varchar(20) NOT NULL,
    overlap_limit integer,
    misfire varchar(20) NOT NULL DEFAULT 'latest',
    misfire_window bigint NOT NULL,
    misfire_limit integer NOT NULL DEFAULT 100,
    pause_after integer,
    paused_at bigint,
    paused_reason longtext,
    paused_by longtext,
    paused_until bigint,
    parked_at bigint,
    fired_through bigint NOT NULL,
    next_at bigint,
    made bigint NOT NULL DEFAULT 0,
    streak_from bigint NOT NULL DEFAULT 0,
    rev integer NOT NULL DEFAULT 1,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    -- What fires next; neither what is paused nor what is parked. And what resumes by itself.
    KEY {schedules}_next (paused_at, parked_at, next_at),
    KEY {schedules}_until (parked_at, paused_until)
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS {workers} (
    id varchar(200) NOT NULL PRIMARY KEY,
    state varchar(7) NOT NULL CHECK (state IN ('alive', 'dead', 'stopped')),
    host longtext NOT NULL,
    host_key varchar(200),
    pid bigint NOT NULL,
    pid_started varchar(64),
    version varchar(64) NOT NULL,
    queues longtext NOT NULL,
    tasks longtext NOT NULL,
    declares longtext,
    fires smallint NOT NULL DEFAULT 0,
    name varchar(200),
    slots integer NOT NULL,
    started_at bigint NOT NULL,
    beat_at bigint NOT NULL,
    lease_until bigint NOT NULL,
    running integer NOT NULL DEFAULT 0,
    done bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    loop_lag bigint NOT NULL DEFAULT 0,
    last_error longtext,
    paused_at bigint,
    paused_reason longtext,
    watched_until bigint,
    journal longtext
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS {queues} (
    name varchar(200) NOT NULL PRIMARY KEY,
    paused_at bigint,
    paused_reason longtext,
    most integer,
    rate_count integer,
    rate_period bigint,
    starts longtext
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- Where jobs wait for limits; the limits as the last worker that looked had them, for people, not for the claim.
CREATE TABLE IF NOT EXISTS {gates} (
    name varchar(350) NOT NULL PRIMARY KEY,
    task varchar(200) NOT NULL,
    most integer,
    rate_count integer,
    rate_period bigint,
    starts longtext,
    seen_at bigint NOT NULL
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS {commands} (
    id varchar(64) NOT NULL PRIMARY KEY,
    worker varchar(200),
    kind varchar(20) NOT NULL,
    body longtext,
    created_at bigint NOT NULL,
    taken_at bigint,
    done_at bigint,
    outcome longtext,
    dropped smallint NOT NULL DEFAULT 0,
    KEY {commands}_open (worker, done_at)
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS {audit} (
    id varchar(64) NOT NULL PRIMARY KEY,
    at bigint NOT NULL,
    who longtext,
    verb varchar(20) NOT NULL,
    target varchar(220) NOT NULL,
    detail longtext,
    KEY {audit}_target (target, at),
    KEY {audit}_time (at)
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS {tasks} (
    name varchar(200) NOT NULL PRIMARY KEY,
    queue varchar(200) NOT NULL,
    options longtext NOT NULL,
    argument_schema longtext NOT NULL,
    announced_at bigint NOT NULL
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS {credentials} (
    id varchar(64) NOT NULL PRIMARY KEY,
    kind varchar(20) NOT NULL,
    digest varchar(64) NOT NULL,
    name longtext NOT NULL,
    role varchar(20) NOT NULL,
    queues longtext,
    parent varchar(64),
    created_at bigint NOT NULL,
    expires_at bigint,
    used_at bigint,
    revoked_at bigint,
    UNIQUE KEY {credentials}_digest (digest)
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS {statistics} (
    id varchar(250) NOT NULL PRIMARY KEY,
    kind varchar(20) NOT NULL,
    grain varchar(1) NOT NULL,
    name varchar(200) NOT NULL,
    start bigint NOT NULL,
    body longtext NOT NULL,
    KEY {statistics}_start (grain, start)
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- What processes tell each other: each writes to one of a few rows, over what it has told before.

CREATE TABLE IF NOT EXISTS {hints} (
    slot smallint NOT NULL PRIMARY KEY COMMENT 'Where a process writes.',
    told bigint NOT NULL COMMENT 'How often something was told there.',
    said longtext NOT NULL COMMENT 'What was told last.'
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS {meta} (
    version bigint PRIMARY KEY,
    name varchar(64) NOT NULL,
    code text NOT NULL,
    applied_at bigint NOT NULL,
    store_id varchar(64)
) ENGINE InnoDB ROW_FORMAT DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

INSERT INTO {meta} (version, name, code, applied_at, store_id)
VALUES (1, 'first', '{code}', unix_timestamp() * 1000000, replace(uuid(), '-', ''))
ON DUPLICATE KEY UPDATE version = 1;
