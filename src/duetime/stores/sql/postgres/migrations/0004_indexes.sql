-- Fewer indexes, whose conditions are quickly said: whether a job has ended is whether it has an end.
-- A statement that writes jobs opens all of their indexes and works out their conditions, for a single job too.

-- What a schedule has made: the jobs in each state are an ordered range.
DROP INDEX {jobs}_live;
DROP INDEX {jobs}_streak;
CREATE INDEX {jobs}_history ON {jobs} (schedule, state, occurrence) WHERE schedule IS NOT NULL;

-- One job per occurrence. The condition is one that the planner does not conclude from another, so that it takes this index
-- only where it is asked for, and not in place of the one above.
DROP INDEX {jobs}_occurrence;
CREATE UNIQUE INDEX {jobs}_occurrence ON {jobs} (schedule, occurrence) WHERE (occurrence IS NULL) IS FALSE;

-- One holder for each key: a live job, or one that keeps it past its end.
DROP INDEX {jobs}_key;
CREATE UNIQUE INDEX {jobs}_key ON {jobs} (task, unique_key)
WHERE unique_key IS NOT NULL AND key_held = 1
  AND (finished_at IS NULL OR keep_key IS NOT NULL OR key_until IS NOT NULL);

-- What people look for: jobs that ended otherwise than well.
DROP INDEX {jobs}_unsuccessful;
CREATE INDEX {jobs}_unsuccessful ON {jobs} (id) WHERE finished_at IS NOT NULL AND state <> 'succeeded';

-- Room for the entries of new versions of a row beside the first, as there is for the versions: a page that fills up must be
-- cleared or split.
ALTER INDEX {jobs}_pkey SET (fillfactor = 60);

-- The same rule as before, as one constant: it is read anew for each statement.
ALTER TABLE {jobs} DROP CONSTRAINT {jobs}_state_check;
ALTER TABLE {jobs} ADD CONSTRAINT {jobs}_state_check
CHECK (state = ANY ('{pending,running,succeeded,failed,cancelled,skipped}'::text[]));

INSERT INTO {meta} (version, name, code, applied_at)
VALUES (4, 'indexes', '{code}', (extract(epoch FROM now()) * 1000000)::bigint);
