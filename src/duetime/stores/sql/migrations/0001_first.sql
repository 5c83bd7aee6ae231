-- The first tables. Instants are integer microseconds since 1970 in UTC.

CREATE TABLE {meta} (
    version integer PRIMARY KEY, -- The version of the tables, rising; 0 for the note that the work goes on elsewhere.
    name {key_text} NOT NULL, -- What the step is called.
    code text NOT NULL, -- The release that took it; in the note, where the work goes on.
    applied_at bigint NOT NULL, -- When that was, in microseconds since 1970.
    store_id text -- Tells one store from another.
);

CREATE TABLE {jobs} (
    id {job_id}, -- Rises with the time of enqueueing.
    task {key_text} NOT NULL, -- The name under which its function is registered.
    payload text NOT NULL, -- Its arguments by name, as JSON.
    queue {key_text} NOT NULL, -- Where it waits.
    priority smallint NOT NULL, -- From 0, which is served first, to 9.
    state text NOT NULL CHECK ({known_state}), -- pending and running are live, all others are final.
    due_at bigint NOT NULL, -- When it may start, in microseconds since 1970.
    created_at bigint NOT NULL, -- When it was enqueued, in microseconds since 1970.
    started_at bigint, -- When its run began, in microseconds since 1970; empty while it waits or is only claimed.
    finished_at bigint, -- When it came to a final state, in microseconds since 1970.
    worker {key_text}, -- The worker that has it, or had it last.
    claim_id {key_text}, -- Under which claim the worker has it; made up by the worker.
    fence bigint NOT NULL DEFAULT 0, -- Rises with every claim; what is written for an earlier one is refused.
    failures integer NOT NULL DEFAULT 0, -- How many tries have failed.
    crashes integer NOT NULL DEFAULT 0, -- How many workers have died while it ran.
    blames integer NOT NULL DEFAULT 0, -- How many of them died with it as the only suspect.
    on_crash text NOT NULL, -- What follows when its worker dies: retry or fail.
    retries integer, -- How often it is tried again; empty: as its task says.
    timeout bigint, -- How long a try may take, in microseconds; empty: as its task says.
    result text, -- What it returned, as JSON.
    result_error text, -- Why there is no result although it succeeded.
    error text, -- What went wrong at the last try, in a line.
    traceback text, -- Where that was.
    reason text, -- Why it failed, was cancelled or was skipped.
    cancel_requested_at bigint, -- When its worker was asked to stop it, in microseconds since 1970.
    cancel_reason text, -- Why it is to stop.
    schedule {key_text}, -- The schedule that made it.
    occurrence bigint, -- For which occurrence it stands, in microseconds since 1970; empty: made by hand.
    span_first bigint, -- The first of several occurrences that share this record, in microseconds since 1970.
    span_count integer NOT NULL DEFAULT 1, -- How many occurrences share this record.
    waits integer NOT NULL DEFAULT 0, -- For how many other jobs it waits.
    unique_key {key_text}, -- No other job of its task may have the same key.
    keep_key bigint, -- How long it keeps the key past its end, in microseconds.
    key_until bigint, -- Until when it keeps the key in any case, in microseconds since 1970.
    key_held smallint NOT NULL DEFAULT 1, -- 0 once another job has taken the key over.
    tags text, -- Between bars: |a|b|.
    parent {key_text}, -- The job that it repeats, or whose end it was called for.
    callbacks text, -- The jobs to make when it ends, as JSON.
    expires_at bigint, -- When it is skipped if it has not started, in microseconds since 1970.
    progress real, -- How far it has come, from 0 to 1.
    progress_note text, -- What it is doing, in its own words.
    result_ttl bigint, -- How long its result is kept, in microseconds; empty: as long as its record.
    failure_ttl bigint, -- How long its error is kept, in microseconds; empty: as long as its record.
    headers text, -- Texts by name that go along with it, as JSON.
    gate {key_text}, -- The limit that it waits for or runs under.
    error_type text, -- The class of the error, with its module.
    fingerprint {key_text}, -- Equal for failures of one task that are of one kind and come from one place.
    secret text -- The arguments that are masked where they are shown, between bars; return is the result.
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
    job_id {key_text} NOT NULL, -- The job.
    fence bigint NOT NULL, -- The fence of the claim.
    worker {key_text}, -- The worker that had it.
    due_at bigint NOT NULL, -- When it might start, in microseconds since 1970.
    started_at bigint, -- When it began, in microseconds since 1970; empty if it never did.
    ended_at bigint NOT NULL, -- When it ended, in microseconds since 1970.
    outcome text NOT NULL, -- Why the job was tried again.
    error text, -- What went wrong, in a line.
    traceback text, -- Where that was.
    error_type text, -- The class of the error, with its module.
    fingerprint {key_text}, -- As in the job.
    PRIMARY KEY (job_id, fence)
) {key_storage};

CREATE TABLE {schedules} (
    name {key_text} NOT NULL PRIMARY KEY, -- What it is called.
    task {key_text} NOT NULL, -- The name under which the function of its jobs is registered.
    payload text NOT NULL, -- The arguments of its jobs by name, as JSON.
    trigger_spec text NOT NULL, -- When it fires, as JSON.
    declared text NOT NULL, -- What code has declared, as JSON; empty if none has.
    queue {key_text} NOT NULL, -- Where its jobs wait.
    priority smallint NOT NULL, -- That of its jobs, from 0, which is served first, to 9.
    on_crash text NOT NULL, -- What follows when the worker of a job dies: retry or fail.
    retries integer, -- How often a job is tried again; empty: as its task says.
    timeout bigint, -- How long a try may take, in microseconds; empty: as its task says.
    overlap text NOT NULL, -- What happens when the job before has not ended: skip, queue_one, queue_all, cancel_running or allow.
    overlap_limit integer, -- How many jobs may wait with queue_all.
    misfire text NOT NULL DEFAULT 'latest', -- What runs of occurrences that were missed: latest, all or skip.
    misfire_window bigint NOT NULL, -- How late one may still run, in microseconds.
    misfire_limit integer NOT NULL DEFAULT 100, -- How many of them run with all.
    pause_after integer, -- How many failures in a row pause it.
    streak_from bigint NOT NULL DEFAULT 0, -- Failures of occurrences before this do not count towards a pause; in microseconds since 1970.
    owner text NOT NULL, -- code for one that code declares, user for one that was put.
    paused_at bigint, -- Since when it is paused, in microseconds since 1970.
    paused_reason text, -- Why it is paused.
    paused_by text, -- Who has paused it.
    paused_until bigint, -- When it goes on by itself, in microseconds since 1970.
    parked_at bigint, -- Since when no code declares it any more, in microseconds since 1970.
    fired_through bigint NOT NULL, -- All occurrences up to this one are done with; in microseconds since 1970.
    next_at bigint, -- The next occurrence, or where the search for it goes on, in microseconds since 1970; empty: none will come.
    made bigint NOT NULL DEFAULT 0, -- How many jobs it has made.
    rev integer NOT NULL DEFAULT 1, -- Rises with every change.
    created_at bigint NOT NULL, -- When it was first stored, in microseconds since 1970.
    updated_at bigint NOT NULL, -- When it was last changed, in microseconds since 1970.
    options text -- What else its jobs carry, such as tags and callbacks, as JSON.
);

-- What fires next; neither what is paused nor what is parked.
CREATE INDEX {schedules}_next ON {schedules} (next_at)
WHERE next_at IS NOT NULL AND paused_at IS NULL AND parked_at IS NULL;

-- What resumes by itself.
CREATE INDEX {schedules}_until ON {schedules} (paused_until)
WHERE paused_until IS NOT NULL AND paused_at IS NOT NULL AND parked_at IS NULL;

CREATE TABLE {workers} (
    id {key_text} NOT NULL PRIMARY KEY, -- Made up by the worker when it starts.
    state text NOT NULL CHECK (state IN ('alive', 'dead', 'stopped')), -- dead: its lease ran out, or its process is gone.
    host text NOT NULL, -- The name of its machine.
    host_key text, -- Equal for workers that see the same processes.
    pid bigint NOT NULL, -- The id of its process.
    pid_started text, -- Tells its process from a later one with the same id.
    version text NOT NULL, -- The release that it runs.
    queues text NOT NULL, -- The queues that it works on, as JSON.
    tasks text NOT NULL DEFAULT '[]', -- The tasks that it can run, as JSON.
    declares text, -- The schedules that its code declares, as JSON; empty: not known.
    fires smallint NOT NULL DEFAULT 0, -- Whether it fires schedules.
    name {key_text}, -- What it was called when it was started; several may share a name.
    slots integer NOT NULL, -- How many jobs it runs at once, at most.
    started_at bigint NOT NULL, -- When it started, in microseconds since 1970.
    beat_at bigint NOT NULL, -- Its last sign of life, in microseconds since 1970.
    lease_until bigint NOT NULL, -- Until when it counts as alive, in microseconds since 1970.
    running integer NOT NULL DEFAULT 0, -- How many jobs it runs.
    done bigint NOT NULL DEFAULT 0, -- How many runs have ended.
    failed bigint NOT NULL DEFAULT 0, -- How many jobs have failed.
    loop_lag bigint NOT NULL DEFAULT 0, -- How long its event loop was last blocked, in microseconds.
    last_error text, -- What last went wrong in the worker itself.
    paused_at bigint, -- Since when it starts no jobs, in microseconds since 1970.
    paused_reason text, -- Why it starts none.
    watched_until bigint, -- Until when it notes what it does, because someone watches, in microseconds since 1970.
    journal text -- What it noted last, as JSON.
) {worker_storage};

CREATE TABLE {queues} (
    name {key_text} NOT NULL PRIMARY KEY, -- What it is called.
    paused_at bigint, -- Since when it is paused, in microseconds since 1970.
    paused_reason text, -- Why it is paused.
    most integer, -- How many of its jobs may run at once, over all workers.
    rate_count integer, -- How many of its jobs may start in a period.
    rate_period bigint, -- How long the period is, in microseconds.
    starts text -- The last starts under the rate, as JSON, in microseconds since 1970.
);

-- Where jobs wait for limits; the limits as the last worker that looked had them, for people, not for the claim.
CREATE TABLE {gates} (
    name {key_text} NOT NULL PRIMARY KEY, -- What is limited: a task, one value of an argument of a task, or a schedule.
    task {key_text} NOT NULL, -- The task of the jobs that wait.
    most integer, -- How many jobs may run under it at once, over all workers.
    rate_count integer, -- How many jobs may start in a period.
    rate_period bigint, -- How long the period is, in microseconds.
    starts text, -- The last starts under the rate, as JSON, in microseconds since 1970.
    seen_at bigint NOT NULL -- When a worker last looked, in microseconds since 1970.
);

-- What runs have logged, in parts.
CREATE TABLE {logs} (
    job_id {key_text} NOT NULL, -- The job.
    fence bigint NOT NULL, -- The fence of the claim that it ran under.
    line integer NOT NULL, -- The number of the first line, from 1.
    attempt integer NOT NULL, -- Which try it was, from 1.
    text text NOT NULL, -- The lines.
    PRIMARY KEY (job_id, fence, line)
) {key_storage};

CREATE TABLE {commands} (
    id {key_text} NOT NULL PRIMARY KEY, -- Rises with time.
    worker {key_text}, -- The worker that is told.
    kind text NOT NULL, -- pause, resume, stop, stop_now, stop_job, release_job or stacks.
    body text, -- The job and the reason, as JSON.
    created_at bigint NOT NULL, -- When it was sent, in microseconds since 1970.
    taken_at bigint, -- When the worker read it, in microseconds since 1970.
    done_at bigint, -- When it was answered or dropped, in microseconds since 1970.
    outcome text, -- The answer of the worker; for a dropped one, why.
    dropped smallint NOT NULL DEFAULT 0 -- Whether the worker was gone before it had answered.
);

-- What each worker has been told and has not done.
CREATE INDEX {commands}_open ON {commands} (worker) WHERE done_at IS NULL;

CREATE TABLE {audit} (
    id {key_text} NOT NULL PRIMARY KEY, -- Rises with time.
    at bigint NOT NULL, -- When it was done, in microseconds since 1970.
    who text, -- Who did it.
    verb text NOT NULL, -- What was done: put, edit, pause and so on.
    target text NOT NULL, -- A schedule by its name, or in brackets a job, a queue or a worker.
    detail text -- What has changed, or the reason, as JSON.
);

-- What happened to each thing, and to all, in order.
CREATE INDEX {audit}_target ON {audit} (target, at, id);
CREATE INDEX {audit}_time ON {audit} (at, id);

-- What workers can run, for those who have not the code.
CREATE TABLE {tasks} (
    name {key_text} NOT NULL PRIMARY KEY, -- The name under which its function is registered.
    queue {key_text} NOT NULL, -- Where its jobs wait.
    options text NOT NULL, -- What else its jobs start from, as JSON.
    argument_schema text NOT NULL, -- What arguments it takes by name, as a JSON Schema.
    announced_at bigint NOT NULL -- When a worker last said so, in microseconds since 1970.
);

-- Who may do what over a network.
CREATE TABLE {credentials} (
    id {key_text} NOT NULL PRIMARY KEY, -- Rises with time.
    kind text NOT NULL, -- token, session, calendar, or link, which signs in once.
    digest {key_text} NOT NULL, -- The SHA-256 of the secret, which is stored nowhere.
    name text NOT NULL, -- Whose it is, or what it is for.
    role text NOT NULL, -- viewer, operator or admin.
    queues text, -- The queues that it is good for, as JSON; empty: all.
    parent {key_text}, -- What it was made from, and ends with.
    created_at bigint NOT NULL, -- When it was made, in microseconds since 1970.
    expires_at bigint, -- Until when it is accepted, in microseconds since 1970; empty: until it is revoked.
    used_at bigint, -- When it was last used, as far as that was noted, in microseconds since 1970.
    revoked_at bigint -- When it was revoked, in microseconds since 1970.
);

CREATE UNIQUE INDEX {credentials}_digest ON {credentials} (digest);

-- Figures over time.
CREATE TABLE {statistics} (
    id {key_text} NOT NULL PRIMARY KEY, -- kind|grain|name|start; of a part: part| and what rises with time; empty: the row that is locked to merge parts.
    kind text NOT NULL, -- Whose sums these are: those of a task, queue or schedule, or all; part for what was not merged yet.
    grain text NOT NULL, -- Sums of a minute (m), an hour (h) or a day (d); p for a part.
    name text NOT NULL, -- The name of the task, queue or schedule; of a part, the worker that wrote it.
    start bigint NOT NULL, -- When the stretch of time begins, in microseconds since 1970; in the row without an id, how often parts were merged.
    body text NOT NULL -- Counts by outcome, and histograms of wait, run time and lateness, as JSON.
);

-- What is old.
CREATE INDEX {statistics}_start ON {statistics} (grain, start);

INSERT INTO {meta} (version, name, code, applied_at, store_id)
VALUES (1, 'first', '{code}', {new_store});
