-- What schedules need to be trusted: policies, counts, parking, and who changed what.

ALTER TABLE {schedules} ADD COLUMN overlap_limit integer;
ALTER TABLE {schedules} ADD COLUMN misfire text NOT NULL DEFAULT 'latest';
ALTER TABLE {schedules} ADD COLUMN misfire_limit integer NOT NULL DEFAULT 100;
ALTER TABLE {schedules} ADD COLUMN pause_after integer;
-- Failures before this instant do not count towards a pause.
ALTER TABLE {schedules} ADD COLUMN streak_from bigint NOT NULL DEFAULT 0;
-- How many jobs it has made. Where their number is limited, each occurrence has counted so far, from the start on.
ALTER TABLE {schedules} ADD COLUMN made bigint NOT NULL DEFAULT 0;
UPDATE {schedules} SET made = least((spec ->> 'times')::bigint, (fired_through - start) / interval + 1)
FROM (
    SELECT name AS of, trigger_spec::json AS spec, (trigger_spec::json ->> 'start')::bigint AS start,
           (trigger_spec::json ->> 'interval')::bigint AS interval
    FROM {schedules} WHERE trigger_spec LIKE '%"times"%'
) AS counted
WHERE name = of AND fired_through >= start;
-- Since when no code declares it any more.
ALTER TABLE {schedules} ADD COLUMN parked_at bigint;

-- What fires next; neither what is paused nor what is parked.
DROP INDEX {schedules}_next;
CREATE INDEX {schedules}_next ON {schedules} (next_at)
WHERE next_at IS NOT NULL AND paused_at IS NULL AND parked_at IS NULL;

-- What resumes by itself.
CREATE INDEX {schedules}_until ON {schedules} (paused_until)
WHERE paused_until IS NOT NULL AND paused_at IS NOT NULL AND parked_at IS NULL;

-- How the occurrences of each schedule ended that ran to their end: for the failures in a row.
CREATE INDEX {jobs}_streak ON {jobs} (schedule, occurrence)
WHERE schedule IS NOT NULL AND (state = 'succeeded' OR state = 'failed');

-- What happened to each schedule, in order.
CREATE INDEX {audit}_target ON {audit} (target, at, id);

-- Whether a worker fires schedules, and which ones its code declares; NULL for workers that do not tell, of before.
ALTER TABLE {workers} ADD COLUMN fires smallint NOT NULL DEFAULT 0;
ALTER TABLE {workers} ADD COLUMN declares text;

INSERT INTO {meta} (version, name, code, applied_at)
VALUES (3, 'schedules', '{code}', (extract(epoch FROM now()) * 1000000)::bigint);
