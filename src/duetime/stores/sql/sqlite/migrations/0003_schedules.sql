-- What schedules need to be trusted: policies, counts, parking, and who changed what.

ALTER TABLE {schedules} ADD COLUMN overlap_limit integer;
ALTER TABLE {schedules} ADD COLUMN misfire text NOT NULL DEFAULT 'latest';
ALTER TABLE {schedules} ADD COLUMN misfire_limit integer NOT NULL DEFAULT 100;
ALTER TABLE {schedules} ADD COLUMN pause_after integer;
-- Failures before this instant do not count towards a pause.
ALTER TABLE {schedules} ADD COLUMN streak_from integer NOT NULL DEFAULT 0;
-- How many jobs it has made. Where their number is limited, each occurrence has counted so far, from the start on.
ALTER TABLE {schedules} ADD COLUMN made integer NOT NULL DEFAULT 0;
UPDATE {schedules} SET made = min(
    json_extract(trigger_spec, '$.times'),
    (fired_through - json_extract(trigger_spec, '$.start')) / json_extract(trigger_spec, '$.interval') + 1
)
WHERE trigger_spec LIKE '%"times"%' AND fired_through >= json_extract(trigger_spec, '$.start');
-- Since when no code declares it any more.
ALTER TABLE {schedules} ADD COLUMN parked_at integer;

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
ALTER TABLE {workers} ADD COLUMN fires integer NOT NULL DEFAULT 0;
ALTER TABLE {workers} ADD COLUMN declares text;

INSERT INTO {meta} (version, name, code, applied_at)
VALUES (3, 'schedules', '{code}', CAST(strftime('%s', 'now') AS integer) * 1000000);
