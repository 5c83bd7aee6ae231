-- Fewer indexes, whose conditions are quickly said: whether a job has ended is whether it has an end.

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

INSERT INTO {meta} (version, name, code, applied_at)
VALUES (4, 'indexes', '{code}', CAST(strftime('%s', 'now') AS integer) * 1000000);
