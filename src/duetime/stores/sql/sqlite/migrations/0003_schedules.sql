-- What schedules need to be trusted: policies, counts, parking, and who changed what.

ALTER TABLE {schedules} ADD COLUMN overlap_limit integer;
ALTER TABLE {schedules} ADD COLUMN misfire text NOT NULL DEFAULT 'latest';
ALTER TABLE {schedules} ADD COLUMN misfire_limit integer NOT NULL DEFAULT 100;
ALTER TABLE {schedules} ADD COLUMN pause_after integer;
-- Failures before this instant do not count towards a pause.
ALTER TABLE {schedules} ADD COLUMN streak_from integer NOT NULL DEFAULT 0;
-- How many jobs it has made.
ALTER TABLE {schedules} ADD COLUMN made integer NOT NULL DEFAULT 0;
-- Since when no code declares it any more.
ALTER TABLE {schedules} ADD COLUMN parked_at integer;

-- What resumes by itself.
CREATE INDEX {schedules}_until ON {schedules} (paused_until) WHERE paused_until IS NOT NULL;

-- What happened to each schedule, in order.
CREATE INDEX {audit}_target ON {audit} (target, id);

-- Whether a worker fires schedules, and which ones its code declares.
ALTER TABLE {workers} ADD COLUMN fires integer NOT NULL DEFAULT 0;
ALTER TABLE {workers} ADD COLUMN declares text NOT NULL DEFAULT '[]';

INSERT INTO {meta} (version, name, code, applied_at)
VALUES (3, 'schedules', '{code}', CAST(strftime('%s', 'now') AS integer) * 1000000);
